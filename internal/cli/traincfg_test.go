package cli

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/train"
)

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
