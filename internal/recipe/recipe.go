package recipe

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Recipe is one method on one data set. Its YAML has the same names.
type Recipe struct {
	File string `yaml:"-"` // where it was read

	// Base names a file, beside this one, whose entries hold where this one has none.
	Base string `yaml:"base"`
	// Name heads the names of what is made: data set NAME, model NAME-METHOD, where METHOD
	// is the file's own name.
	Name string `yaml:"name"`

	Dataset Dataset `yaml:"dataset"`
	Network Network `yaml:"network"`
	// After names the recipe, beside this one, whose model the stage starts from. Default:
	// none, it starts from the network.
	After string `yaml:"after"`
	// Basis says what basis of image space is made for the stage. Default: none, the family says it all.
	Basis Basis `yaml:"basis"`
	// Train is the stage: the fields of [train.Config] but dataset and model.
	Train map[string]any `yaml:"train"`
	FID   FID            `yaml:"fid"`

	// Twin holds the entries of the scaled-down twin that differ.
	Twin yaml.Node `yaml:"twin"`

	parent *Recipe // of After
}

// Dataset says what images the recipe is for.
type Dataset struct {
	Source     string `yaml:"source"`     // file or folder to convert, as it was downloaded
	From       string `yaml:"from"`       // where Source comes from, for people
	Generate   string `yaml:"generate"`   // of a twin: the format, one of [Formats], in which images are generated
	Transform  string `yaml:"transform"`  // how images are made square, by EDM's names; default: they are resized
	Labels     string `yaml:"labels"`     // where labels come from: auto (default), folder or none
	Images     int    `yaml:"images"`     // how many there are
	Resolution int    `yaml:"resolution"` // height and width after the conversion
	Channels   int    `yaml:"channels"`
	Classes    int    `yaml:"classes"` // 0: without labels
}

// Network says what network the stages start from: a checkpoint's, or a new one.
type Network struct {
	Name       string         `yaml:"name"`       // the model is NAME-of-the-recipe-NAME
	Checkpoint string         `yaml:"checkpoint"` // EDM's pickle, to be converted
	From       string         `yaml:"from"`       // where Checkpoint comes from, for people
	Config     map[string]any `yaml:"config"`     // EDM's keyword arguments
	// without a checkpoint: the stage that trains it, fields of [train.Config]
	Pretrain map[string]any `yaml:"pretrain"`
}

// Basis says what basis is made of the data set.
type Basis struct {
	Kind string `yaml:"kind"` // pca or pca_per_class; empty: none is made
	// dimensions of the first subspace per channel; default a quarter of the pixels
	K int `yaml:"k"`
	// of pca_per_class: so many consecutive classes share components; default each has its own
	ClusterSize int `yaml:"cluster_size"`
}

// FID says what is sampled and compared with the data set.
type FID struct {
	Solver      string   `yaml:"solver"`
	SecondPoint string   `yaml:"second_point"` // of heun
	NFE         []int    `yaml:"nfe"`
	Seeds       []string `yaml:"seeds"`     // blocks FROM-TO; of each the distance is taken
	Baselines   []string `yaml:"baselines"` // solvers that the network is sampled with on the literature's grids, beside
	Variants    []string `yaml:"variants"`  // further rows of Heun's method; see Variants
}

// Error is a mistake in a recipe: which file, which entry, and what would be right.
type Error struct {
	File  string
	Entry string // such as network.config.label_dim; empty where the file as a whole is meant
	Msg   string
}

func (e *Error) Error() string {
	if e.Entry == "" {
		return fmt.Sprintf("recipe %s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("recipe %s: %s: %s", e.File, e.Entry, e.Msg)
}

func (r *Recipe) errorf(entry, format string, args ...any) error {
	return &Error{r.File, entry, fmt.Sprintf(format, args...)}
}

// Method is the recipe's own name in its folder: that of its file.
func (r *Recipe) Method() string {
	return strings.TrimSuffix(filepath.Base(r.File), filepath.Ext(r.File))
}

// Model is the name of the run, and of the model, that the recipe makes.
func (r *Recipe) Model() string { return r.Name + "-" + r.Method() }

// NetworkModel is the name of the model that holds the network the stages start from.
func (r *Recipe) NetworkModel() string { return r.Name + "-" + r.Network.Name }

// start is the model that the stage starts from.
func (r *Recipe) start() string {
	if r.parent != nil {
		return r.parent.Model()
	}
	return r.NetworkModel()
}
