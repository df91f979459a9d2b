package cli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
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

// A field that the training configuration gains must become a flag too.
func TestTrainSettingsAreTheConfiguration(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[train.Config]()), kindsIn(trainRequest)); diff != "" {
		t.Errorf("settings differ from train.Config (-want +got):\n%s", diff)
	}
}

func TestSampleSettingsAreTheRequest(t *testing.T) {
	want := kindsOf(reflect.TypeFor[api.Sample]())
	for _, streaming := range []string{"every", "dtype", "layout", "batch_bytes"} {
		delete(want, streaming) // how the rows travel, which a file does not show
	}
	if diff := cmp.Diff(want, kindsIn(sampleRequest)); diff != "" {
		t.Errorf("settings differ from api.Sample (-want +got):\n%s", diff)
	}
}

func TestGeodesicSettingsAreTheRequest(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[api.GeodesicSchedule]()), kindsIn(geodesicRequest)); diff != "" {
		t.Errorf("settings differ from api.GeodesicSchedule (-want +got):\n%s", diff)
	}
}

func TestNodesSettingsAreTheRequest(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[api.GaussianSchedule]()), kindsIn(nodesRequest)); diff != "" {
		t.Errorf("settings differ from api.GaussianSchedule (-want +got):\n%s", diff)
	}
}

func TestStartSettingsAreTheRequest(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[api.StartSchedule]()), kindsIn(startRequest)); diff != "" {
		t.Errorf("settings differ from api.StartSchedule (-want +got):\n%s", diff)
	}
}

func TestFewSettingsAreTheRequest(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[api.FewSchedule]()), kindsIn(fewRequest)); diff != "" {
		t.Errorf("settings differ from api.FewSchedule (-want +got):\n%s", diff)
	}
}

func TestStepsSettingsAreTheRequest(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[api.StepsSchedule]()), kindsIn(stepsRequest)); diff != "" {
		t.Errorf("settings differ from api.StepsSchedule (-want +got):\n%s", diff)
	}
}

func TestFitSettingsAreTheRequest(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[api.FitSchedule]()), kindsIn(fitRequest)); diff != "" {
		t.Errorf("settings differ from api.FitSchedule (-want +got):\n%s", diff)
	}
}

func TestBasisSettingsAreTheRequest(t *testing.T) {
	if diff := cmp.Diff(kindsOf(reflect.TypeFor[api.MakeBasis]()), kindsIn(basisRequest)); diff != "" {
		t.Errorf("settings differ from api.MakeBasis (-want +got):\n%s", diff)
	}
}

// A setting has one meaning in every command that has it.
func TestSettingsAgreeAcrossCommands(t *testing.T) {
	for _, s := range append(specs(), scheduleListSpec, scheduleShowSpec, scheduleExportSpec, scheduleGeodesicSpec,
		scheduleNodesSpec, scheduleStartSpec, scheduleFewSpec, scheduleStepsSpec, scheduleFitSpec, basisMakeSpec,
		basisListSpec,
		basisDeleteSpec) {
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
