package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/graphnet"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// architectures are what a config.json can describe, by its model_type. A new kind of
// network is a package and a line here.
var architectures = map[string]func(config []byte) (kernels.Architecture, error){
	unet.SongUNet:      parser(unet.Parse),
	unet.DhariwalUNet:  parser(unet.Parse),
	mixture.ModelType:  parser(mixture.Parse),
	graphnet.ModelType: parser(graphnet.Parse),
}

// parser returns a network's own Parse as one of any architecture.
func parser[A kernels.Architecture](parse func([]byte) (A, error)) func([]byte) (kernels.Architecture, error) {
	return func(config []byte) (kernels.Architecture, error) {
		net, err := parse(config)
		if err != nil {
			return nil, err
		}
		return net, nil
	}
}

// ParseNetwork returns what a config.json describes; its model_type says which kind of
// network it is, and is EDM's default where it is absent. What cannot be used is a
// *[nn.ConfigError].
func ParseNetwork(config []byte) (kernels.Architecture, error) {
	head := struct {
		ModelType string `json:"model_type"`
	}{unet.DhariwalUNet}
	if err := json.Unmarshal(config, &head); err != nil {
		return unet.Parse(config) // which says what is wrong, and where
	}
	parse, ok := architectures[head.ModelType]
	if !ok {
		return nil, &nn.ConfigError{Field: "model_type", Reason: fmt.Sprintf(
			"must be %s, got %q", strings.Join(slices.Sorted(maps.Keys(architectures)), ", "), head.ModelType)}
	}
	return parse(config)
}
