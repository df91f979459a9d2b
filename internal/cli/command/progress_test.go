package command

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Where there is no terminal, a line of the log says now and then how long the rest will take, by what was done since
// the first report.
func TestProgressSaysWhatIsLeft(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, slog.New(slog.NewTextHandler(&out, nil)), "train")
	now := time.Now()
	p.now = func() time.Time { return now }
	p.Set(100, 1000, "")
	now = now.Add(30 * time.Second)
	p.Set(400, 1000, "")
	p.Close()
	if got := out.String(); !strings.Contains(got, "done=400") || !strings.Contains(got, "left=1m0s") {
		t.Errorf("the log says %q", got)
	}
}
