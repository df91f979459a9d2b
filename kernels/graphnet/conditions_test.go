package graphnet

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestConditionsOfAnExport: the table of an exported network takes other rows, with its graph checked anew; a row for
// no class stays the last.
func TestConditionsOfAnExport(t *testing.T) {
	text, err := os.ReadFile("testdata/unet-condition/config.json")
	if err != nil {
		t.Fatal(err)
	}
	shape := func(n *Net) []int {
		for _, p := range n.Params() {
			if p.Name == ConditionsParam {
				return p.Shape
			}
		}
		return nil
	}
	plain, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(*plain.Conditions()); got != "{3 false [4 6]}" {
		t.Errorf("the table is %s", got)
	}
	more, err := plain.WithConditions(5)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(shape(more), []int{5, 4, 6}) || more.Shape().Labels != 5 || more.Conditions().Labels != 5 {
		t.Errorf("five rows are %v of %d labels", shape(more), more.Shape().Labels)
	}
	if more.Spec().Key == plain.Spec().Key {
		t.Error("two networks have one key")
	}
	if same, err := plain.WithConditions(3); same != plain || err != nil {
		t.Errorf("as many rows make another network: %v", err)
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
	fewer, err := none.WithConditions(1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(shape(fewer), []int{2, 4, 6}) || !strings.Contains(string(fewer.Config().Graph), `"none":1`) {
		t.Errorf("one row and that of no class are %v", shape(fewer))
	}
	unet, err := os.ReadFile("testdata/unet/config.json")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Parse(unet); err != nil || n.Conditions() != nil {
		t.Errorf("a network without conditions: %v, %v", n.Conditions(), err)
	}
}
