package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

func TestBasisCommands(t *testing.T) {
	dir := folder(t)
	var made api.BasisInfo
	printed := must(t, dir, "basis", "make", "--name", "pairs", "--kind", "pca_per_class", "--dataset", "bars",
		"--k", "2", "--clusters", "[[0,2]]")
	if err := json.Unmarshal([]byte(printed), &made); err != nil {
		t.Fatal(err)
	}
	if made.Name != "pairs" || made.K != 2 || len(made.Spans) != 2 || made.Spans[0].Images != 32 ||
		made.Spans[1].Images != 16 {
		t.Errorf("made %+v", made)
	}
	must(t, dir, "basis", "make", "--name", "coarse", "--kind", "haar", "--dataset", "bars")
	var listed []api.BasisInfo
	if err := json.Unmarshal([]byte(must(t, dir, "basis", "list", "--json")), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 2 || listed[0].Name != "coarse" || listed[0].K != 16 || !listed[1].PerClass {
		t.Errorf("listed %+v", listed)
	}
	must(t, dir, "basis", "delete", "--name", "pairs")
	if got := must(t, dir, "basis", "list"); strings.Contains(got, "pairs") ||
		!strings.Contains(got, "coarse  8×8     16  no") {
		t.Errorf("after the deletion:\n%s", got)
	}
}
