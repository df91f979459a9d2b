// Package autodiff repairs the derivative rules of the graph library so that
// every operation this module uses can be differentiated any number of times
// by reverse mode.
package autodiff
