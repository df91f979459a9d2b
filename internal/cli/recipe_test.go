package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/recipes"
	"github.com/anisoflight/anisoflight/internal/recipe"
)

// TestCommandsOfRecipesCanBeTyped: every command line of this program that a recipe
// prints is one that the program takes, with values that its settings take.
func TestCommandsOfRecipesCanBeTyped(t *testing.T) {
	files, err := filepath.Glob("../../configs/*/[idp]*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		r, err := recipe.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Stages(recipe.Place{Anisoflight: "anisoflight", Python: "python"}) {
			if s.Program != "anisoflight" {
				continue
			}
			cmd, rest, err := newRoot().Find(s.Args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", file, s, err)
				continue
			}
			if s.Kind == recipe.KindTrain || s.Kind == recipe.KindNetwork {
				set, err := command.Resolve(trainSpec.All(), cmd.Flags())
				if err != nil {
					t.Errorf("%s: %s: %v", file, s, err)
					continue
				}
				got, _ := json.Marshal(set.Request(trainRequest))
				want, _ := json.Marshal(s.Settings)
				if string(got) != string(want) {
					t.Errorf("%s: the command line says\n%s, the recipe\n%s", file, got, want)
				}
			}
		}
	}
}

func TestRecipeTellsWhatItWouldDo(t *testing.T) {
	status, out, stderr := call(t, "recipe", "../../configs/cifar10/dct.yaml", "--dry-run", "--flops-per-second", "1e14",
		"--json")
	if status != 0 {
		t.Fatal(stderr)
	}
	var plans []recipes.Plan
	if err := json.Unmarshal([]byte(out), &plans); err != nil {
		t.Fatal(err)
	}
	p := plans[0]
	if p.Parameters != 55735299 || p.Network != "cifar10-edm" {
		t.Errorf("%+v", p)
	}
	var kinds []string
	for _, s := range p.Stages {
		kinds = append(kinds, string(s.Kind))
	}
	if got := strings.Join(kinds, " "); got != "data network train train reference fid fid fid fid fid fid table" {
		t.Errorf("stages %s", got)
	}
	status, out, _ = call(t, "recipe", "../../configs/cifar10/dct.yaml", "--dry-run", "--flops-per-second", "1e14")
	if status != 0 || !strings.Contains(out, "55735299 parameters") ||
		!strings.Contains(out, "train --data data --name cifar10-dct --stage anisotropic") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestRecipeSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{
			[]string{"../../configs/ffhq/dct-per-class.yaml"},
			"in that folder are base.yaml, dct.yaml, isotropic.yaml, pca.yaml",
		},
		{[]string{"../../configs/digits-pretrain.yaml"}, "stage"},
		{[]string{"../../configs/cifar10/dct.yaml", "--dry-run", "--flops-per-second", "-1"}, "positive"},
		{
			[]string{"../../configs/cifar10/dct.yaml", "--device", "go", "--data", t.TempDir()},
			"downloads/cifar-10-python.tar.gz is missing",
		},
		{nil, "FILE is missing"},
	} {
		status, _, stderr := call(t, append([]string{"recipe"}, c.args...)...)
		if status == 0 || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: status %d, %s; want %q", c.args, status, stderr, c.says)
		}
	}
}
