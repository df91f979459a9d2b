package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// digitsFolder makes the folder "data" in the working directory with what the examples name: the data sets digits and
// patches, of images 8×8 in ten classes, and models of these names.
func digitsFolder(t *testing.T) {
	t.Helper()
	const n = 40
	images, labels := make([]uint8, n*64), make([]int32, n)
	for i := range n {
		labels[i] = int32(i % 10)
		for y := range 8 {
			images[i*64+y*8+i%8], images[i*64+(i%10)*6] = 255, 128
		}
	}
	network := strings.Replace(tinyNetwork, `"label_dim":3`, `"label_dim":10`, 1)
	for _, name := range []string{"digits", "patches"} {
		writeDataset(t, "data", name, images, labels)
		must(t, "data", "train", "--name", name, "--stage", "pretrain", "--dataset", name, "--network", network, "--batch",
			"8", "--kimg", "0.008")
	}
	if err := os.CopyFS("data/models/cifar10", os.DirFS("data/models/digits")); err != nil {
		t.Fatal(err)
	}
}

// Every example of a help text runs, with less work than it says, on a folder that has what the examples name, those of
// a group before those of its commands. Of servers, training and programs of Python the flags alone are checked.
func TestExamplesOfHelp(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	t.Chdir(t.TempDir())
	digitsFolder(t)
	less := map[string]string{
		"schedule geodesic": "--points=8 --samples=4 --replace",
		"schedule start":    "--replace", "schedule predict": "--samples=4 --points=8",
		"few":        "--samples=64 --solvers=ipndm",
		"basis make": "--replace", "model mixture": "--replace", "model draw": "--replace --n=4",
	}
	ran := map[string]int{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		lines := strings.ReplaceAll(cmd.Example, "\\\n", " ")
		for line := range strings.SplitSeq(lines, "\n") {
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, ">>")
			_, line, found := strings.Cut(line, "anisoflight ")
			args := strings.Fields(strings.ReplaceAll(line, "'", ""))
			if !found || len(args) == 0 {
				continue
			}
			named, rest, err := newRoot().Find(args)
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			name := strings.TrimPrefix(named.CommandPath(), "anisoflight ")
			group, _, _ := strings.Cut(name, " ")
			if err := named.ParseFlags(rest); err != nil && !named.DisableFlagParsing {
				t.Errorf("%s: %v", line, err)
			}
			if !strings.Contains(" schedule sample few plan model basis fsck version ", " "+group+" ") {
				continue
			}
			if name == "plan delete" {
				must(t, "data", "few", "--model", "digits", "--nfe", "2", "--name", "five", "--replace")
			}
			if name == "basis delete" {
				must(t, "data", "basis", "make", "--name", "digits-pca", "--kind", "pca", "--dataset", "digits", "--replace")
			}
			for i, arg := range args {
				if name == "sample" && (arg == "64" || arg == "10000") {
					args[i] = "2"
				}
			}
			args = append(args, strings.Fields(less[name])...)
			if named.Flags().Lookup("device") != nil {
				args = append(args, "--device=go")
			}
			if status, _, stderr := call(t, args...); status != 0 {
				t.Errorf("anisoflight %s: status %d\n%s", strings.Join(args, " "), status, stderr)
			}
			ran[group]++
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
	for _, group := range []string{"schedule", "sample", "few", "plan", "model", "basis", "fsck", "version"} {
		if ran[group] == 0 {
			t.Errorf("no example of %s has run: %v", group, ran)
		}
	}
}
