package command

import (
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestGoneCommands: a command of 0.1 is answered with what to type now, whatever its arguments.
func TestGoneCommands(t *testing.T) {
	for line, instead := range map[string]string{
		"anisoflight advise":                "data inspect",
		"anisoflight advise digits --nfe 3": "data inspect",
	} {
		words := strings.Fields(line)
		cmd := Group{Use: words[0]}.Command()
		cmd.AddCommand(&cobra.Command{Use: "version", Run: func(*cobra.Command, []string) {}})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetFlagErrorFunc(FlagError)
		cmd.SetOut(io.Discard)
		cmd.SetArgs(words[1:])
		err := cmd.Execute()
		if err == nil || !strings.Contains(err.Error(), "is gone since 0.1: "+instead) {
			t.Errorf("%s: error %v, want one with %q", line, err, instead)
		}
	}
}

func TestVersionNamesItsCommitBetweenReleases(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "1a2b3c4d5e6f7890"}
	clean, dirty := debug.BuildSetting{Key: "vcs.modified", Value: "false"},
		debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		number   string
		settings []debug.BuildSetting
		want     string
	}{
		{"0.2.0.dev0", []debug.BuildSetting{commit, clean}, "0.2.0.dev0+g1a2b3c4"},
		{"0.2.0.dev0", []debug.BuildSetting{commit, dirty}, "0.2.0.dev0+g1a2b3c4.dirty"},
		{"0.2.0.dev0", nil, "0.2.0.dev0"},
		{"0.2.0", []debug.BuildSetting{commit, dirty}, "0.2.0"},
	} {
		if got := versionAt(c.number, c.settings); got != c.want {
			t.Errorf("%s of %v is %s, want %s", c.number, c.settings, got, c.want)
		}
	}
}
