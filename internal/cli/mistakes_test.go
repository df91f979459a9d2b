package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What does not exist is refused with the nearest of what does.
func TestDidYouMean(t *testing.T) {
	dir := folder(t)
	makeTwo(t, "--data", dir)
	must(t, dir, "model", "mixture", "--name", "bars-gmm", "--dataset", "bars")
	picture := filepath.Join(t.TempDir(), "a.png")
	for line, want := range map[string]string{
		"sample --model bar-gmm":                         `No model is called "bar-gmm". Did you mean "bars-gmm"?`,
		"sample --model cifar":                           `No model is called "cifar". There are: bars-gmm.`,
		"sample --model bars-gmm --schedule tow":         `No schedule is called "tow". Did you mean "two"?`,
		"sample --model bars-gmm --solver huen":          `got "huen"; did you mean "heun"?`,
		"sample --model bars-gmm --grid edn":             `logsnr, got "edn"; did you mean "edm"?`,
		"train --name a --dataset bars --stage pretrian": `anisotropic, got "pretrian"; did you mean "pretrain"?`,
		"train --name a --stage pretrain --dataset bar":  `No data set is called "bar". Did you mean "bars"?`,
		"train --name a --resume":                        `No run is called "a". There is none so far`,
		"schedule show --schedule ebm":                   `No schedule is called "ebm". Did you mean "edm"?`,
		"basis make --name a --kind pcaa --dataset bars": `pca_per_class, got "pcaa"; did you mean "pca"?`,
	} {
		args := strings.Split(line, " ")
		if args[0] == "sample" {
			args = append(args, "--out", picture)
		}
		fails(t, 1, want, append(args, "--data", dir, "--device", "go")...)
	}
}

// A mistyped --data is an error; serve alone makes the folder it is given.
func TestTypoMakesNoFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("data", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"train", "--name", "a"},
		{"model", "mixture", "--name", "a"},
		{"model", "list"},
		{"schedule", "start", "--name", "a", "--dataset", "b"},
	} {
		fails(t, 1, "the data folder \"dta\" does not exist; choose another --data, or make it with "+
			"`anisoflight serve --data dta` or mkdir\n", append(args, "--data", "dta")...)
	}
	if _, err := os.Stat("dta"); err == nil {
		t.Error("a folder was made")
	}
	startServer(t, "new")
}

// The file that a command would write is tried before anything is done for it.
func TestOutIsTriedFirst(t *testing.T) {
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "nowhere")
	out := filepath.Join(nowhere, "a.png")
	fails(t, 1, "anisoflight: "+out+" cannot be written: there is no folder "+nowhere+"\n",
		"sample", "--model", "m", "--out", out, "--data", "none")
	folder := filepath.Join(dir, "a.png")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, "is a folder; give", "sample", "--model", "m", "--out", folder)
}
