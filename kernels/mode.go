package kernels

import "github.com/anisoflight/anisoflight/base/suggest"

// Mode names a way to estimate the gradient with respect to the schedule.
type Mode string

// The modes of [Model.Estimate].
const (
	// Auto is Backprop where the network sees all of g, and Full elsewhere.
	Auto Mode = "auto"
	// Full is all five terms, by double reverse mode. The network's dependence
	// on g is covered by the implicit terms, so g is a constant to it.
	Full Mode = "full"
	// Backprop is the explicit terms and ordinary differentiation through every
	// way in which g conditions the network. One reverse pass.
	Backprop Mode = "backprop"
	// Explicit is the explicit terms alone: unbiased only at the optimal
	// network. A diagnostic.
	Explicit Mode = "explicit"
	// LossOnly is |P_j r|² and no derivative: for measuring the loss. It is not
	// among the estimator's modes that a user may name.
	LossOnly Mode = "loss"
)

// Modes lists the names of the estimator's modes.
var Modes = []string{string(Auto), string(Full), string(Backprop), string(Explicit)}

// ParseMode returns the mode of that name; "" is Auto.
func ParseMode(name string) (Mode, error) {
	if name == "" {
		return Auto, nil
	}
	if wrong := suggest.OneOf(name, Modes); wrong != "" {
		return "", inputf("mode", "%s", wrong)
	}
	return Mode(name), nil
}

// probed reports whether a mode needs probes.
func (m Mode) probed() bool { return m == Full }
