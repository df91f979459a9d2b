package pickle

// The values of a pickle are nil, bool, int64, float64, string (for str and bytes alike),
// Tuple, *List, *Dict, Global and *Object.
type (
	// Tuple is a tuple.
	Tuple []any
	// List is a list.
	List struct{ Items []any }
	// Dict is a dict whose keys are strings.
	Dict struct{ Items map[string]any }
	// Global is the name of a function or class.
	Global struct{ Module, Name string }
	// Object is a call that was not made: of Func with Args; State is what would have been
	// set on the result.
	Object struct {
		Func  Global
		Args  Tuple
		State any
	}
)
