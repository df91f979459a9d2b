package recipe_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/internal/recipe"
)

const configs = "../../configs"

// files are all recipes: what lies in the folders of configs/ and has a stage.
func files(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(configs, "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f string) bool {
		return filepath.Base(f) == "base.yaml" || filepath.Base(f) == "conditional.yaml"
	})
}

// TestRecipesAreThePapers holds every recipe to the paper's settings.
func TestRecipesAreThePapers(t *testing.T) {
	perClass := []string{"isotropic-per-class", "dct-per-class", "pca-per-class"}
	shared := []string{"isotropic", "dct", "pca"}
	found := files(t)
	for _, want := range []struct {
		name       string
		methods    []string
		images     int
		parameters int // of EDM's published networks
		batch      int
		c          float64 // of stage 2
		halflife   int
		nfe        []int
	}{
		{"cifar10", append(perClass, shared...), 50000, 55735299, 256, 0.5, 500, []int{9, 11, 13, 15, 17, 35, 59, 79}},
		{"afhqv2", shared, 15803, 61805571, 1024, 2, 500, []int{9, 11, 13, 15, 19, 39, 79, 119}},
		{"ffhq", shared, 70000, 61805571, 1024, 1, 500, []int{9, 11, 13, 15, 19, 39, 79, 119}},
		{"imagenet64", append(perClass, shared...), 1281167, 295899267, 512, 1, 50000, []int{9, 11, 13, 15, 19, 39, 79, 119}},
	} {
		for _, method := range want.methods {
			file := filepath.Join(configs, want.name, method+".yaml")
			found = slices.DeleteFunc(found, func(f string) bool { return f == file })
			r, err := recipe.Load(file)
			if err != nil {
				t.Error(err)
				continue
			}
			net, err := r.Net()
			if err != nil {
				t.Fatal(err)
			}
			stage, c, lr := "anisotropic", want.c, 1e-4
			if strings.HasPrefix(method, "isotropic") {
				stage, c, lr = "isotropic", 1, 1e-2
			}
			stages := r.Stages(recipe.Place{Data: "data"})
			run := stages[slices.IndexFunc(stages, func(s recipe.Stage) bool {
				return s.Makes == want.name+"-"+method &&
					s.Settings != nil
			})]
			got, err := run.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			family, _ := got["family"].(map[string]any)
			for what, pair := range map[string][2]any{
				"parameters": {net.ParamCount(), want.parameters}, "images": {r.Dataset.Images, want.images},
				"batch": {got["batch"], float64(want.batch)}, "kimg": {got["kimg"], 1200.0}, "flip": {got["flip"], true},
				"stage": {got["stage"], stage}, "c": {got["c"], c}, "lr": {got["lr"], 1e-5}, "schedule_lr": {
					got["schedule_lr"],
					lr,
				},
				"lr_ramp": {got["lr_ramp"], "published"}, "schedule_lr_ramp": {got["schedule_lr_ramp"], "published"},
				"half-life": {got["ema_halflife_kimg"], float64(want.halflife)},
				"beta2":     {got["beta2"], 0.999}, "train_network": {got["train_network"], true},
				"per_class": {family["per_class"] == true, slices.Contains(perClass, method)},
				"seeds":     {strings.Join(r.FID.Seeds, " "), "0-49999 50000-99999 100000-149999"},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %s is %v, want %v", file, what, pair[0], pair[1])
				}
			}
			if !slices.Equal(r.FID.NFE, want.nfe) {
				t.Errorf("%s: nfe %v, want %v", file, r.FID.NFE, want.nfe)
			}
		}
	}
	// What the paper has not: classes of AFHQv2, with a network that is trained from scratch.
	for _, method := range perClass {
		file := filepath.Join(configs, "afhqv2", method+".yaml")
		found = slices.DeleteFunc(found, func(f string) bool { return f == file })
		r, err := recipe.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if r.NetworkModel() != "afhqv2-conditional" || r.Network.Config["label_dim"] != 3 {
			t.Errorf("%s starts from %s", file, r.NetworkModel())
		}
	}
	if len(found) > 0 {
		t.Errorf("recipes of which nothing is known here: %v", found)
	}
}

// The table has EDM's grid, its midpoint form and an unlearned schedule uniform in t beside the method, each with the
// grid, the schedule and the second point that its name says.
func TestVariantsOfTheMethod(t *testing.T) {
	r, err := recipe.Load(filepath.Join(configs, "cifar10", "dct.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, s := range r.Stages(recipe.Place{Data: "data", Anisoflight: "anisoflight", Python: "python"}) {
		if s.Kind == recipe.KindFID {
			rows[s.Makes] = strings.Join(s.Args, " ")
		}
	}
	for row, says := range map[string][]string{
		"EDM, uniform in t": {
			"--model cifar10-edm", "--schedule edm --grid schedule", "--second-point endpoint",
		},
		r.Method() + ", EDM's grid":           {"--model " + r.Model(), "--grid edm", "--second-point endpoint"},
		r.Method() + ", EDM's grid, midpoint": {"--model " + r.Model(), "--grid edm", "--second-point midpoint"},
	} {
		for _, part := range append(says, "--solver heun", "--nfe 9,11,13,15,17,35,59,79") {
			if !strings.Contains(rows[row], part) {
				t.Errorf("%s: %q lacks %q", row, rows[row], part)
			}
		}
		if strings.Count(rows[row], "--second-point") != 1 {
			t.Errorf("%s: %q", row, rows[row])
		}
	}
}

// TestTwinsDoTheSame: a twin has the stages of its recipe, its family and its settings,
// but for size and length, and nothing in common with it by name.
func TestTwinsDoTheSame(t *testing.T) {
	place := recipe.Place{Data: "data", Anisoflight: "anisoflight", Python: "python"}
	for _, file := range files(t) {
		r, err := recipe.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		twin, err := recipe.Twin(file)
		if err != nil {
			t.Fatal(err)
		}
		baseline := func(s recipe.Stage) bool { return s.Kind == recipe.KindFID && s.Makes != r.Method() } // a twin has fewer
		full, small := slices.DeleteFunc(r.Stages(place), baseline), slices.DeleteFunc(twin.Stages(place), baseline)
		if len(full) != len(small) {
			t.Errorf("%s: %d stages, its twin %d", file, len(full), len(small))
			continue
		}
		for i := range full {
			a, b := full[i], small[i]
			if a.Kind != b.Kind || a.Makes == b.Makes && a.Kind != recipe.KindFID && a.Kind != recipe.KindTable {
				t.Errorf("%s, stage %d: %s %s, of its twin %s %s", file, i+1, a.Kind, a.Makes, b.Kind, b.Makes)
			}
			if a.Kind != recipe.KindTrain {
				continue
			}
			for name, v := range a.Settings {
				differs := map[string]bool{
					"dataset": true, "model": true, "family": true, "batch": true, "microbatch": true, "kimg": true,
					"lr_ramp": true, "schedule_lr_ramp": true,
				}
				if !differs[name] && b.Settings[name] != v {
					t.Errorf("%s: %s is %v, of its twin %v", file, name, v, b.Settings[name])
				}
			}
		}
		if a, b := r.Network.Config["model_type"], twin.Network.Config["model_type"]; a != b {
			t.Errorf("%s: %s, its twin %s", file, a, b)
		}
	}
}

// write makes a recipe of CIFAR-10's base with entries of its own.
func write(t *testing.T, entries string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"base", "isotropic"} {
		text, err := os.ReadFile(filepath.Join(configs, "cifar10", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other.yaml"),
		[]byte("base: base.yaml\nname: other\ntrain: {stage: isotropic}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte(entries), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMistakesAreNamed(t *testing.T) {
	const good = "base: base.yaml\ntrain: {stage: isotropic}\n"
	if _, err := recipe.Load(write(t, good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ entries, entry, says string }{
		{good + "dataset: {resolution: 64}\n", "network.config.img_resolution", "32, but dataset.resolution is 64"},
		{good + "dataset: {channels: 1}\n", "network.config.img_channels", "3, but dataset.channels is 1"},
		{good + "dataset: {classes: 7}\n", "network.config.label_dim", "10, but dataset.classes is 7"},
		{good + "dataset: {images: 0}\n", "dataset.images", "how many"},
		{good + "dataset: {transform: squash}\n", "dataset.transform", "center-crop"},
		{good + "network: {config: {chanel_mult: [1]}}\n", "network.config.chanel_mult", "unknown field"},
		{good + "network: {checkpoint: \"\"}\n", "network", "either checkpoint"},
		{good + "network: {checkpoint: \"\", pretrain: {lr: -1}}\n", "network.pretrain.lr", "-1"},
		{good + "tain: {}\n", "", "tain"},
		{good + "basis: {k: 5}\n", "basis.kind", "missing"},
		{good + "basis: {kind: pca, cluster_size: 2}\n", "basis.cluster_size", "pca_per_class"},
		{good + "basis: {kind: pca, k: 1024}\n", "basis.k", "1023"},
		{good + "basis: {kind: haar}\n", "basis.kind", "haar"},
		{
			"base: base.yaml\nbasis: {kind: pca}\ntrain: {stage: anisotropic, family: {basis: dct}}\n", "train.family.basis",
			"dct",
		},
		{"base: base.yaml\ntrain: {stage: isotropic, batch: none}\n", "train", "batch"},
		{"base: base.yaml\ntrain: {stage: isotropic, batchsize: 3}\n", "train", "batchsize"},
		{"base: base.yaml\ntrain: {stage: isotropic, family: {basis: dct}}\n", "train.family", "isotropic"},
		{"base: base.yaml\ntrain: {stage: pretrain}\n", "train.stage", "pretrain"},
		{"base: base.yaml\ntrain: {stage: isotropic, model: x}\n", "train.model", "elsewhere"},
		{
			"base: base.yaml\nnetwork: {config: {label_dim: 0}}\ntrain: {stage: isotropic, family: {per_class: true}}\n",
			"train.family.per_class", "label_dim",
		},
		{
			"base: base.yaml\nnetwork: {config: {label_dim: 0}}\nbasis: {kind: pca_per_class}\ntrain: {stage: anisotropic}\n",
			"basis.kind", "label_dim",
		},
		{good + "fid: {solver: hein}\n", "fid.solver", "heun"},
		{good + "fid: {baselines: [rk]}\n", "fid.baselines", "rk"},
		{good + "fid: {variants: [uniform, fine]}\n", "fid.variants", "fine"},
		{good + "fid: {nfe: [0]}\n", "fid.nfe", "0"},
		{good + "fid: {seeds: [9-3]}\n", "fid.seeds", "9-3"},
		{good + "after: other.yaml\n", "after", "other-edm"},
		{good + "after: mine.yaml\n", "after", "itself"},
		{good + "after: none.yaml\n", "", "base.yaml, isotropic.yaml, mine.yaml, other.yaml"},
		{good + "name: Ä\n", "name", "Ä"},
		{"base: mine.yaml\n", "base", "own base"},
	} {
		_, err := recipe.Load(write(t, c.entries))
		var bad *recipe.Error
		if !errors.As(err, &bad) {
			t.Errorf("%q: %v", c.entries, err)
			continue
		}
		if bad.Entry != c.entry || !strings.Contains(bad.Msg, c.says) {
			t.Errorf("%q: entry %q, %q; want %q, %q", c.entries, bad.Entry, bad.Msg, c.entry, c.says)
		}
	}
}

// TestWhatIsThereIsHeldToTheRecipe: data, network and runs of something else are found out.
func TestWhatIsThereIsHeldToTheRecipe(t *testing.T) {
	r, err := recipe.Load(filepath.Join(configs, "cifar10", "dct.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(err error, entry string) {
		t.Helper()
		if err == nil && entry == "" {
			return
		}
		if err == nil || !strings.Contains(err.Error(), entry+":") && !strings.Contains(err.Error(), "has "+entry) {
			t.Errorf("%v, want a word about %s", err, entry)
		}
	}
	names(r.CheckDataset(50000, []int{32, 32, 3}, 10), "")
	names(r.CheckDataset(50000, []int{3, 32, 32}, 10), "")
	names(r.CheckDataset(50000, []int{64, 64, 3}, 10), "dataset.resolution")
	names(r.CheckDataset(50000, []int{32, 32, 1}, 10), "dataset.channels")
	names(r.CheckDataset(49999, []int{32, 32, 3}, 10), "dataset.images")
	names(r.CheckDataset(50000, []int{32, 32, 3}, 0), "dataset.classes")
	const config = `{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":10,"augment_dim":9,` +
		`"channel_mult":[2,2,2],"dropout":0.13}`
	names(r.CheckModel([]byte(config)), "")
	names(r.CheckModel([]byte(strings.Replace(config, "0.13", "0.1", 1))), "network.config.dropout")
	names(r.CheckModel([]byte(strings.Replace(config, "[2,2,2]", "[1,2,2]", 1))), "network.config.channel_mult")
	for _, s := range r.Stages(recipe.Place{}) {
		if s.Makes == "cifar10-dct" && s.Settings != nil {
			const run = `{"stage":"anisotropic","dataset":"cifar10","model":"cifar10-isotropic","family":{"per_class":false,` +
				`"basis":"dct"},"batch":256,"microbatch":128,` +
				`"kimg":1200,"flip":true,"lr":1e-5,"lr_ramp":"published","schedule_lr_ramp":"published","ema_halflife_kimg":500,` +
				`"c":0.5,"schedule_lr":1e-4,"T":6400}`
			names(s.CheckRun([]byte(run)), "")
			names(s.CheckRun([]byte(strings.Replace(run, "256", "512", 1))), "batch")
			names(s.CheckRun([]byte(strings.Replace(run, "dct", "haar", 1))), "family")
		}
	}
}

// TestCostsOfStages: a run takes so many steps of what a step is known to compute, a
// sampler so many evaluations.
func TestCostsOfStages(t *testing.T) {
	r, err := recipe.Twin(filepath.Join(configs, "cifar10", "dct.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	net, err := r.Net()
	if err != nil {
		t.Fatal(err)
	}
	const rate = 1e9
	counted := 0
	for _, s := range r.Stages(recipe.Place{}) {
		c, ok, err := r.Cost(devicetest.PureGo(t), s, recipe.Hardware{Rate: rate})
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		counted++
		var evaluations, slack float64
		switch {
		case s.Kind == recipe.KindFID:
			evaluations, slack = 4*(3+5), 0
		case s.Makes == "cifar10-twin-dct":
			evaluations, slack = 5*8, 0.15 // forward, reverse, reverse of both: five times, a little more in attention
		default:
			evaluations, slack = 3*8, 0.15
		}
		want := evaluations * float64(net.FLOPs())
		if !(c.FLOPs <= (1+slack/5)*want && c.FLOPs >= (1-slack)*want) {
			t.Errorf("%s %s: %g operations, want %g", s.Kind, s.Makes, c.FLOPs, want)
		}
		if math.Abs(c.Hours*3600*rate-c.FLOPs) > 1e-6*c.FLOPs ||
			math.Abs(c.PerSec*c.FLOPs-rate*float64(c.Images)) > 1e-6*rate*float64(c.Images) {
			t.Errorf("%s %s: %g hours, %g images a second for %d images", s.Kind, s.Makes, c.Hours, c.PerSec, c.Images)
		}
		if c.Memory <= 0 {
			t.Errorf("%s %s needs no memory", s.Kind, s.Makes)
		}
	}
	if counted != 8 {
		t.Errorf("%d stages use the network, want pretrain, two runs and five distances", counted)
	}
}
