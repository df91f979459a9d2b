package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/setting"
)

// transforms are those of python -m anisoflight.data.
var transforms = []string{"resize", "center-crop", "center-crop-wide", "center-crop-dhariwal"}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)

// check returns the first entry that cannot be used, or that does not fit another.
func (r *Recipe) check() error {
	switch {
	case !nameForm.MatchString(r.Name):
		return r.errorf("name", "%q; it is made of a-z, 0-9, dot, dash and underscore, and heads the names of what is made",
			r.Name)
	case !nameForm.MatchString(r.Method()):
		return r.errorf("", "its name becomes that of the model; it is made of a-z, 0-9, dot, dash and underscore")
	}
	for _, check := range []func() error{
		r.checkDataset, r.checkNetwork, r.checkBasis, r.checkTrain, r.checkParent,
		r.checkFID,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recipe) checkDataset() error {
	d := r.Dataset
	switch {
	case d.Images < 1:
		return r.errorf("dataset.images", "%d; it says how many images there are", d.Images)
	case d.Resolution < 1:
		return r.errorf("dataset.resolution", "%d; it says how many pixels high and wide the images are", d.Resolution)
	case d.Channels < 1:
		return r.errorf("dataset.channels", "%d; it is 3 for colour, 1 for grey", d.Channels)
	case d.Classes < 0:
		return r.errorf("dataset.classes", "%d; it is 0 for images without labels", d.Classes)
	case d.Transform != "" && !slices.Contains(transforms, d.Transform):
		return r.errorf("dataset.transform", "there is no %q; choose one of %s", d.Transform, strings.Join(transforms, ", "))
	case d.Generate != "" && !slices.Contains(Formats, d.Generate):
		return r.errorf("dataset.generate", "there is no format %q; choose one of %s", d.Generate,
			strings.Join(Formats, ", "))
	case d.Source == "" && d.Generate == "":
		return r.errorf("dataset.source", "it is missing: the file or folder with the images, as it was downloaded")
	}
	return nil
}

// checkNetwork holds the network to the data set.
func (r *Recipe) checkNetwork() error {
	if !nameForm.MatchString(r.Network.Name) {
		return r.errorf("network.name", "%q; it is made of a-z, 0-9, dot, dash and underscore", r.Network.Name)
	}
	c, err := r.Network.parse()
	var field *nn.ConfigError
	switch {
	case errors.As(err, &field) && field.Field != "":
		return r.errorf("network.config."+field.Field, "%s", field.Reason)
	case err != nil:
		return r.errorf("network.config", "%v", err)
	case c.ImgResolution != kernels.Square(r.Dataset.Resolution):
		return r.errorf("network.config.img_resolution", "%v, but dataset.resolution is %d", c.ImgResolution,
			r.Dataset.Resolution)
	case c.ImgChannels != r.Dataset.Channels:
		return r.errorf("network.config.img_channels", "%d, but dataset.channels is %d", c.ImgChannels, r.Dataset.Channels)
	case c.LabelDim != 0 && c.LabelDim != r.Dataset.Classes:
		return r.errorf("network.config.label_dim", "%d, but dataset.classes is %d; 0 is a network without classes",
			c.LabelDim, r.Dataset.Classes)
	case (r.Network.Checkpoint == "") == (len(r.Network.Pretrain) == 0):
		return r.errorf("network",
			"give either checkpoint, a pickle of EDM's, or pretrain, the stage that trains the network")
	case r.Network.Checkpoint == "":
		_, err := r.config("network.pretrain", r.pretrainSettings())
		return err
	}
	return nil
}

// parse reads the network's configuration.
func (n Network) parse() (unet.Config, error) {
	text, err := json.Marshal(n.Config)
	if err != nil {
		return unet.Config{}, err
	}
	return unet.ParseConfig(text)
}

func (r *Recipe) conditional() bool {
	return r.Network.Config["label_dim"] != nil && r.Network.Config["label_dim"] != 0
}

func (r *Recipe) checkBasis() error {
	b := r.Basis
	switch {
	case b.Kind == "" && (b.K != 0 || b.ClusterSize != 0):
		return r.errorf("basis.kind", "it is missing; choose pca or pca_per_class")
	case b.Kind == "":
		return nil
	case b.Kind != "pca" && b.Kind != perClass:
		return r.errorf("basis.kind", "there is no %q; choose pca or pca_per_class", b.Kind)
	case b.Kind == perClass && !r.conditional():
		return r.errorf("basis.kind",
			"%q needs classes, and the network knows none (network.config.label_dim is 0); choose pca", b.Kind)
	case b.K < 0 || b.K >= r.Dataset.Resolution*r.Dataset.Resolution:
		return r.errorf("basis.k", "%d; it lies between 1 and %d, 0 being a quarter of the pixels", b.K,
			r.Dataset.Resolution*r.Dataset.Resolution-1)
	case b.ClusterSize != 0 && b.Kind != perClass:
		return r.errorf("basis.cluster_size", "it goes with kind pca_per_class only")
	case b.ClusterSize < 0 || b.ClusterSize > r.Dataset.Classes:
		return r.errorf("basis.cluster_size", "%d; there are %d classes", b.ClusterSize, r.Dataset.Classes)
	}
	if f, ok := r.Train["family"].(map[string]any); ok && f["basis"] != nil {
		return r.errorf("train.family.basis", "%q, but the recipe makes a basis of its own; leave one of the two out",
			f["basis"])
	}
	return nil
}

// checkTrain holds the stage to what a run takes.
func (r *Recipe) checkTrain() error {
	for _, own := range []string{"dataset", "model", "network"} {
		for entry, settings := range map[string]map[string]any{"train": r.Train, "network.pretrain": r.Network.Pretrain} {
			if _, ok := settings[own]; ok {
				return r.errorf(entry+"."+own, "the recipe says it elsewhere; leave it out")
			}
		}
	}
	c, err := r.config("train", r.settings())
	switch {
	case err != nil:
		return err
	case c.Stage == train.Pretrain:
		return r.errorf("train.stage",
			"a recipe learns a schedule: isotropic or anisotropic; pretrain is an entry of network")
	case c.Family.PerClass && !r.conditional():
		return r.errorf("train.family.per_class",
			"it needs classes, and the network knows none (network.config.label_dim is 0)")
	}
	return nil
}

// config reads settings as a run would.
func (r *Recipe) config(entry string, settings map[string]any) (c train.Config, err error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return c, r.errorf(entry, "%v", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, r.errorf(entry, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	c, err = c.Resolve()
	var field *setting.Error
	if errors.As(err, &field) {
		return c, r.errorf(entry+"."+field.Field, "%s", field.Msg)
	}
	return c, err
}

// checkParent: what it starts from must be of the same data and network.
func (r *Recipe) checkParent() error {
	if p := r.parent; p != nil && p.NetworkModel() != r.NetworkModel() {
		return r.errorf("after", "%s starts from the network %s, this recipe from %s; give both the same base", r.After,
			p.NetworkModel(), r.NetworkModel())
	}
	return nil
}
