package nn

// ConfigError says which field of a network's configuration cannot be used, and what to do.
type ConfigError struct {
	Field  string // as config.json names it; empty where the whole text is unusable
	Reason string
}

func (e *ConfigError) Error() string {
	if e.Field == "" {
		return "network configuration: " + e.Reason
	}
	return "network configuration: " + e.Field + ": " + e.Reason
}

// StateError says which tensor of a state dict does not fit the network, and why.
type StateError struct {
	Tensor string
	Reason string
}

func (e *StateError) Error() string { return "state dict: " + e.Tensor + ": " + e.Reason }
