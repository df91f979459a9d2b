package runs

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// ReadConfig reads a training configuration strictly. Where zero stands for a field's default, a zero that was sent is
// refused: it would silently become another number.
func ReadConfig(body json.RawMessage) (cfg train.Config, err error) {
	if err := api.DecodeStruct(body, &cfg); err != nil {
		return cfg, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		return cfg, err
	}
	for _, name := range cfg.Unset() {
		if value, ok := sent[name]; ok && string(value) != "null" {
			return cfg, api.Errorf(api.BadRequest, "%s must be positive, got %s", name, value).
				WithHint("Leave it out for its default.")
		}
	}
	return cfg, nil
}

// resolved fills in what defaults to constants, and names the first field that is missing or wrong, before any work.
func resolved(cfg train.Config) (train.Config, error) {
	for _, f := range []struct{ name, value string }{{"stage", cfg.Stage}, {"dataset", cfg.Dataset}} {
		if f.value == "" {
			return cfg, api.Errorf(api.BadRequest, "%s is missing", f.name)
		}
	}
	return cfg.Resolve()
}

// networkOf returns a run's network; nil where it cannot be told, which is said where the run is made.
func networkOf(cfg train.Config, src train.Sources) kernels.Architecture {
	if src.Model != nil {
		return src.Model.Net
	}
	net, err := checkpoint.ParseNetwork(cfg.Network)
	if err != nil {
		return nil
	}
	return net
}

// classesOf is the number of classes that a run's network knows, 0 where it cannot be told.
func classesOf(cfg train.Config, src train.Sources) int {
	if net := networkOf(cfg, src); net != nil {
		return net.Shape().Labels
	}
	return 0
}
