// Package pickle reads Python pickles without doing anything that they say.
//
// A pickle is a program for a small stack machine, and two of its instructions call
// functions by name. Here a call is only written down, as an [Object], for the reader to
// interpret: nothing is looked up and nothing runs. Instructions that plain data and NumPy
// arrays do not need are refused. What a pickle can allocate is bounded by its own length.
//
// The package imports nothing of the project. Begin at [Load].
package pickle
