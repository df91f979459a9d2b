package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/schedules"
	"github.com/anisoflight/anisoflight/internal/cli/serve"
	"github.com/anisoflight/anisoflight/train"
)

// A setting has one meaning in every command that has it.
func TestSettingsAgreeAcrossCommands(t *testing.T) {
	for _, s := range slices.Concat([]command.Spec{serve.Spec, trainSpec, sampleSpec}, schedules.Group.Specs, basisGroup.Specs) {
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
