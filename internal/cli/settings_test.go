package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/train"
)

// TestExitStatus: 2 is wrong usage, 130 an interrupt, as of shells; a Python module's own status is passed on.
func TestExitStatus(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, 0},
		{t.Context(), errors.New("wrong"), 1},
		{t.Context(), command.Usagef(newRoot(), "wrong"), 2},
		{t.Context(), command.ExitError(3), 3},
		{t.Context(), command.ErrInterrupted, 130},
		{t.Context(), context.Canceled, 1},
		{interrupted, fmt.Errorf("a call: %w", context.Canceled), 130},
	} {
		if got := exitStatus(c.ctx, io.Discard, c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
}

func TestParseLabels(t *testing.T) {
	for in, want := range map[string][]int32{
		"3": {3}, "0,1, 2": {0, 1, 2}, "0-3,7,7": {0, 1, 2, 3, 7, 7}, "-1": {-1}, "-1-1": {-1, 0, 1},
		"": nil, "a": nil, "1-": nil, "5-4": nil, "0-99999999": nil, "99999999999": nil,
	} {
		got, err := parseLabels(in)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("labels %q are %v (%v), want %v", in, got, err, want)
		}
	}
}

func TestCompleteSample(t *testing.T) {
	for name, c := range map[string]struct{ in, want map[string]any }{
		"nothing": {map[string]any{}, map[string]any{"n": 64, "steps": 18}},
		"labels": {
			map[string]any{"labels": "0-1", "nfe": int64(5)},
			map[string]any{"labels": []int32{0, 1}, "nfe": int64(5)},
		},
		"one label": {
			map[string]any{"labels": 7.0, "nfe": int64(5)},
			map[string]any{"labels": []int32{7}, "nfe": int64(5)},
		},
		"explicit grid": {
			map[string]any{"n": int64(1), "grid": map[string]any{"t": []any{1.0, 0.0}}},
			map[string]any{"n": int64(1), "grid": map[string]any{"t": []any{1.0, 0.0}}},
		},
		"edm grid": {
			map[string]any{"n": int64(1), "grid": "edm"},
			map[string]any{"n": int64(1), "grid": "edm", "steps": 18},
		},
	} {
		if err := completeSample(c.in); err != nil || !reflect.DeepEqual(c.in, c.want) {
			t.Errorf("%s: %v (%v), want %v", name, c.in, err, c.want)
		}
	}
}

// The files in configs/ are whole configurations that differ from the defaults in
// what they say.
func TestConfigurationFiles(t *testing.T) {
	files, err := filepath.Glob("../../configs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in configs/: %v", err)
	}
	for _, file := range files {
		cmd := trainSpec.Command()
		if err := cmd.ParseFlags([]string{"--config", file}); err != nil {
			t.Fatal(err)
		}
		s, err := command.Resolve(trainSpec.All(), cmd.Flags())
		if err != nil {
			t.Error(err)
			continue
		}
		body, err := json.Marshal(s.Request(trainRequest))
		if err != nil {
			t.Fatal(err)
		}
		var cfg train.Config
		if err := api.DecodeStruct(body, &cfg); err != nil {
			t.Errorf("%s: %v", file, err)
		} else if _, err := cfg.Resolve(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
