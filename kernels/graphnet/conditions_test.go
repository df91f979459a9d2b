package graphnet

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestConditionsOfAnExport: the table of an exported network is told by its rows and labels; a row for no class is the
// last.
func TestConditionsOfAnExport(t *testing.T) {
	text, err := os.ReadFile("testdata/unet-condition/config.json")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(*plain.Conditions()); got != "{3 false [4 6]}" {
		t.Errorf("the table is %s", got)
	}
	with := strings.NewReplacer(`"shape": [3, 4, 6]`, `"shape": [4, 4, 6]`, `[3, 24]`, `[4, 24]`,
		`"op": "input", "target": "label"`, `"op": "input", "target": "label", "args": {"none": 3}`).Replace(string(text))
	none, err := Parse([]byte(with))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(*none.Conditions()); got != "{3 true [4 6]}" {
		t.Errorf("the table is %s", got)
	}
	unet, err := os.ReadFile("testdata/unet/config.json")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Parse(unet); err != nil || n.Conditions() != nil {
		t.Errorf("a network without conditions: %v, %v", n.Conditions(), err)
	}
}
