package setting

import "testing"

type settings struct {
	Count int      `json:"count" default:"3" min:"1" max:"8"`
	Knots int      `json:"knots" given:"2"`
	Rate  float64  `json:"rate" above:"0"`
	Beta  float64  `json:"beta" default:"0.5" above:"0" below:"1"`
	Hold  *float64 `json:"hold" default:"0.25" min:"0" max:"1"`
	Shape string   `json:"shape" default:"round" oneof:"shapes"`
}

// TestTags: what is left at zero has its default, or is left out; every other value is held to its tags.
func TestTags(t *testing.T) {
	for want, change := range map[string]func(*settings){
		"":                                              func(*settings) {},
		"count must be at least 1, got -1":              func(s *settings) { s.Count = -1 },
		"count must be at most 8, got 9":                func(s *settings) { s.Count = 9 },
		"knots must be at least 2, got 1":               func(s *settings) { s.Knots = 1 },
		"rate must be positive, got -1":                 func(s *settings) { s.Rate = -1 },
		"beta must be between 0 and 1, got 1":           func(s *settings) { s.Beta = 1 },
		"hold must be at most 1, got 2":                 func(s *settings) { s.Hold = new(2.0) },
		"shape must be one of round, square, got \"x\"": func(s *settings) { s.Shape = "x" },
	} {
		var s settings
		change(&s)
		SetDefaults(&s)
		got := ""
		if err := Check(&s, map[string][]string{"shapes": {"round", "square"}}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	s := settings{Hold: new(0.0)}
	SetDefaults(&s)
	if s.Count != 3 || s.Beta != 0.5 || *s.Hold != 0 || s.Shape != "round" || s.Knots != 0 {
		t.Errorf("%+v", s)
	}
}
