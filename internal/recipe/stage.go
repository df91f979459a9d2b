package recipe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a stage makes.
type Kind string

// The kinds of stages.
const (
	KindData      Kind = "data"      // the data set
	KindNetwork   Kind = "network"   // the model that holds the network: a checkpoint's, or one trained here
	KindBasis     Kind = "basis"     // the basis of image space
	KindTrain     Kind = "train"     // the method's model: a run that learns its schedule
	KindReference Kind = "reference" // what distances are taken to
	KindFID       Kind = "fid"       // distances of a model's samples
	KindTable     Kind = "table"     // the distances, laid out
)

const perClass = "pca_per_class"

// Stage is one command line of a recipe. Doing a stage again changes nothing.
type Stage struct {
	Kind    Kind
	Program string   // Anisoflight or Python of the [Place]
	Args    []string // that the program is called with
	Makes   string   // the name of the data set, basis or model (and run) that it makes, or a file
	Needs   string   // a file or folder of the user's that must be there
	From    string   // where it is to be had
	Model   string   // of distances: the model whose samples are looked at

	// Settings are those of the run, where the stage is one.
	Settings map[string]any
}

// String is the command line, quoted for a shell.
func (s Stage) String() string {
	words := []string{s.Program}
	for _, a := range s.Args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%"
	if word != "" && strings.Trim(word, plain) == "" && !strings.ContainsFunc(word,
		func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Place says where a recipe's stages find and leave things.
type Place struct {
	Anisoflight string // this program
	Python      string // one that has the package anisoflight

	Data     string // folder of models, datasets and runs
	Server   string // address at which a server of that folder answers
	Features string // network of the distances, as anisoflight.fid takes it
	Trust    bool   // it is a pickle that may be executed
}

// Stages are what the recipe does, in order, from the data set to the table; those of the
// recipes that it starts from come first.
func (r *Recipe) Stages(p Place) []Stage {
	stages := []Stage{r.convert(p), r.network(p)}
	stages = append(stages, r.schedules(p)...)
	return append(stages, r.measures(p)...)
}

// convert makes the data set.
func (r *Recipe) convert(p Place) Stage {
	d := r.Dataset
	s := Stage{Kind: KindData, Program: p.Python, Makes: r.Name, Needs: d.Source, From: d.From}
	s.Args = []string{
		"-m", "anisoflight.data", "convert", r.source(p), "--data", p.Data, "--name", r.Name, "--resolution",
		strconv.Itoa(d.Resolution),
	}
	if d.Transform != "" {
		s.Args = append(s.Args, "--transform", d.Transform)
	}
	if d.Labels != "" {
		s.Args = append(s.Args, "--labels", d.Labels)
	}
	return s
}

// network converts the checkpoint, or trains a new network.
func (r *Recipe) network(p Place) Stage {
	n := r.Network
	if n.Checkpoint == "" {
		return r.run(p, KindNetwork, r.NetworkModel(), r.pretrainSettings())
	}
	return Stage{
		Kind: KindNetwork, Program: p.Python, Makes: r.NetworkModel(), Needs: n.Checkpoint, From: n.From,
		Args: []string{"-m", "anisoflight.convert", n.Checkpoint, filepath.Join(p.Data, "models", r.NetworkModel())},
	}
}

// schedules are the stages that learn: those of the recipe that it starts from, then its own.
func (r *Recipe) schedules(p Place) []Stage {
	var stages []Stage
	if r.parent != nil {
		stages = r.parent.schedules(p)
	}
	if r.Basis.Kind != "" {
		args := []string{
			"basis", "make", "--data", p.Data, "--name", r.basisName(), "--kind", r.Basis.Kind, "--dataset",
			r.Name,
		}
		if r.Basis.K != 0 {
			args = append(args, "--k", strconv.Itoa(r.Basis.K))
		}
		if clusters := r.clusters(); clusters != nil {
			args = append(args, "--clusters", value(clusters))
		}
		stages = append(stages, Stage{Kind: KindBasis, Program: p.Anisoflight, Makes: r.basisName(), Args: args})
	}
	return append(stages, r.run(p, KindTrain, r.Model(), r.settings()))
}

// run is a stage of training, whose model has the run's name.
func (r *Recipe) run(p Place, kind Kind, name string, settings map[string]any) Stage {
	args := []string{"train", "--data", p.Data, "--name", name}
	for _, field := range slices.SortedFunc(maps.Keys(settings), byImportance) {
		flag := "--" + strings.ReplaceAll(field, "_", "-")
		switch v := settings[field].(type) {
		case bool:
			args = append(args, fmt.Sprintf("%s=%t", flag, v))
		default:
			args = append(args, flag, value(v))
		}
	}
	return Stage{Kind: kind, Program: p.Anisoflight, Makes: name, Args: args, Settings: settings}
}

// basisName is that of the basis that is made: one for all recipes that make it alike.
func (r *Recipe) basisName() string {
	name := r.Name + "-" + strings.ReplaceAll(strings.Replace(r.Basis.Kind, "pca", "components", 1), "_", "-")
	if r.Basis.K != 0 {
		name += fmt.Sprintf("-%d", r.Basis.K)
	}
	if r.Basis.ClusterSize > 1 {
		name += fmt.Sprintf("-by-%d", r.Basis.ClusterSize)
	}
	return name
}

// clusters are the groups of consecutive classes that share components.
func (r *Recipe) clusters() [][]int {
	if r.Basis.ClusterSize < 2 {
		return nil
	}
	classes := make([]int, r.Dataset.Classes)
	for i := range classes {
		classes[i] = i
	}
	return slices.Collect(slices.Chunk(classes, r.Basis.ClusterSize))
}

// settings are those of the run that learns the schedule.
func (r *Recipe) settings() map[string]any {
	s := clone(r.Train)
	s["dataset"], s["model"] = r.Name, r.start()
	if r.Basis.Kind != "" {
		family, _ := s["family"].(map[string]any)
		family = clone(family)
		family["basis"] = r.basisName()
		s["family"] = family
	}
	return s
}

// pretrainSettings are those of the run that trains the network.
func (r *Recipe) pretrainSettings() map[string]any {
	s := clone(r.Network.Pretrain)
	s["stage"], s["dataset"], s["network"] = "pretrain", r.Name, r.Network.Config
	return s
}

// clone copies a mapping, which may be nil, to one that can be written to.
func clone(m map[string]any) map[string]any {
	c := map[string]any{}
	maps.Copy(c, m)
	return c
}

// value writes a setting as a flag takes it.
func value(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	text, err := json.Marshal(v)
	if err != nil { // what YAML can say that JSON cannot has been refused by check
		return fmt.Sprint(v)
	}
	return string(text)
}

// byImportance puts what a run is before how it is done.
func byImportance(a, b string) int {
	first := []string{"stage", "dataset", "model", "network", "family", "batch", "kimg"}
	rank := func(s string) int {
		if i := slices.Index(first, s); i >= 0 {
			return i
		}
		return len(first)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
