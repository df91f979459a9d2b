package recipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train"
)

// CheckDataset holds a stored data set to the recipe: how many images it has, their
// shape, and the number of classes.
func (r *Recipe) CheckDataset(images int, shape []int, classes int) error {
	d := r.Dataset
	differs := func(entry string, want, have any) error {
		return r.errorf("dataset."+entry,
			"%v, but the data set %s that is there has %v; correct the entry, or convert the right images", want, r.Name, have)
	}
	height, width, channels := shape[0], shape[1], shape[2] // HWC, unless the channels come first
	if height == d.Channels && width == shape[2] {
		height, width, channels = shape[1], shape[2], shape[0]
	}
	switch {
	case height != d.Resolution || width != d.Resolution:
		return differs("resolution", d.Resolution, fmt.Sprintf("images of %d×%d", height, width))
	case channels != d.Channels:
		return differs("channels", d.Channels, channels)
	case images != d.Images:
		return differs("images", d.Images, images)
	case classes != d.Classes:
		return differs("classes", d.Classes, classes)
	}
	return nil
}

// CheckModel holds the config.json of the model with the network to the recipe: every
// entry of network.config must be there as it is in the recipe.
func (r *Recipe) CheckModel(config []byte) error {
	have, err := fields(unet.ParseConfig(config))
	if err != nil {
		return fmt.Errorf("model %s: %w", r.NetworkModel(), err)
	}
	want, err := fields(r.Network.parse())
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Network.Config)) {
		if !reflect.DeepEqual(want[name], have[name]) {
			return r.errorf("network.config."+name,
				"%v, but the model %s that is there has %v; correct the entry, or convert the right checkpoint", want[name],
				r.NetworkModel(), have[name])
		}
	}
	return nil
}

// CheckRun holds the configuration of a run that is there to the stage's settings.
func (s Stage) CheckRun(config []byte) error {
	want, err := s.Resolved()
	if err != nil {
		return err
	}
	var have map[string]any
	if err := json.Unmarshal(config, &have); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		if !reflect.DeepEqual(want[name], have[name]) {
			return fmt.Errorf("the run %s that is there has %s %v, the recipe %v; delete the run and its model to begin it anew",
				s.Makes, name, have[name], want[name])
		}
	}
	return nil
}

// Resolved are the settings of the stage's run with the defaults filled in that do not
// depend on where it starts; nil where the stage is no run.
func (s Stage) Resolved() (map[string]any, error) {
	if s.Settings == nil {
		return nil, nil
	}
	text, err := json.Marshal(s.Settings)
	if err != nil {
		return nil, err
	}
	var c train.Config
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	return fields(c.Resolve())
}

// fields takes a configuration apart.
func fields(config any, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	return m, json.Unmarshal(text, &m)
}
