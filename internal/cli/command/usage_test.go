package command

import (
	"runtime/debug"
	"testing"
)

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
