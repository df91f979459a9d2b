package cli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/cli/schedules"
	"github.com/anisoflight/anisoflight/train"
)

// kindsOf returns the settings that a request's fields need, by name.
func kindsOf(request reflect.Type) map[string]command.Kind {
	kinds := map[string]command.Kind{}
	for i := range request.NumField() {
		f := request.Field(i)
		if f.Anonymous {
			maps.Copy(kinds, kindsOf(f.Type))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.String:
			kinds[name] = command.Text
		case reflect.Float64:
			kinds[name] = command.Number
		case reflect.Int:
			kinds[name] = command.Whole
		case reflect.Uint64:
			kinds[name] = command.Seed
		case reflect.Bool:
			kinds[name] = command.Toggle
		default:
			kinds[name] = command.Object
		}
	}
	return kinds
}

func kindsIn(options []command.Option) map[string]command.Kind {
	kinds := map[string]command.Kind{}
	for _, o := range options {
		kinds[o.Name] = o.Kind
	}
	return kinds
}

// A field that the training configuration or a request gains must become a flag too.
func TestSettingsAreTheRequest(t *testing.T) {
	for command, c := range map[string]struct {
		request  reflect.Type
		settings []command.Option
	}{
		"train":             {reflect.TypeFor[train.Config](), trainRequest},
		"sample":            {reflect.TypeFor[api.Sample](), sampleRequest},
		"basis make":        {reflect.TypeFor[api.MakeBasis](), basisRequest},
		"schedule geodesic": {reflect.TypeFor[api.GeodesicSchedule](), scheduleRequest(t, "geodesic")},
		"schedule nodes":    {reflect.TypeFor[api.GaussianSchedule](), scheduleRequest(t, "nodes")},
		"schedule start":    {reflect.TypeFor[api.StartSchedule](), scheduleRequest(t, "start")},
		"schedule few":      {reflect.TypeFor[api.FewSchedule](), scheduleRequest(t, "few")},
		"schedule fit":      {reflect.TypeFor[api.FitSchedule](), scheduleRequest(t, "fit")},
	} {
		want := kindsOf(c.request)
		if command == "sample" {
			// how the rows travel, which a file does not show, and how programs share out a request
			for _, streaming := range []string{"every", "dtype", "layout", "batch_bytes", "offset", "weights"} {
				delete(want, streaming)
			}
		}
		if diff := cmp.Diff(want, kindsIn(c.settings)); diff != "" {
			t.Errorf("settings of %s differ from its request (-want +got):\n%s", command, diff)
		}
	}
}

// scheduleRequest returns the settings of a command on schedules that become fields of its request.
func scheduleRequest(t *testing.T, use string) []command.Option {
	t.Helper()
	i := slices.IndexFunc(schedules.Group.Specs, func(s command.Spec) bool { return s.Use == use })
	if i < 0 {
		t.Fatalf("there is no command schedule %s", use)
	}
	return slices.DeleteFunc(slices.Clone(schedules.Group.Specs[i].Options), func(o command.Option) bool {
		return slices.ContainsFunc(connect.FolderOptions, func(f command.Option) bool { return f.Name == o.Name })
	})
}

// A setting has one meaning in every command that has it.
func TestSettingsAgreeAcrossCommands(t *testing.T) {
	for _, s := range slices.Concat(specs(), schedules.Group.Specs, basisGroup.Specs) {
		seen := map[string]bool{"config": true, "json": true, "help": true}
		for _, o := range s.All() {
			if seen[o.Name] {
				t.Errorf("%s has %s twice", s.Use, o.Name)
			}
			seen[o.Name] = true
			if strings.ToLower(o.Name) != o.Name && seen[strings.ToLower(o.Name)] {
				t.Errorf("%s: %s differs from another setting in case alone", s.Use, o.Name)
			}
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
