package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a long command is: a bar on a terminal, else a log line
// now and then.
type progress struct {
	bar  *progressbar.ProgressBar
	log  *slog.Logger
	what string
	next time.Time // of the next log line
}

const logEvery = 10 * time.Second

func newProgress(w io.Writer, log *slog.Logger, what string) *progress {
	p := &progress{log: log, what: what, next: time.Now().Add(logEvery)}
	if onTerminal(w) {
		p.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(),
			progressbar.OptionShowElapsedTimeOnFinish(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(),
		)
	}
	return p
}

// set moves to done of total; total ≤ 0 is unknown. note is shown beside it.
func (p *progress) set(done, total int64, note string) {
	if p.bar == nil {
		if now := time.Now(); now.After(p.next) {
			p.next = now.Add(logEvery)
			p.log.Info(p.what, "done", done, "total", total, "note", note)
		}
		return
	}
	if total > 0 && p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	if note != "" {
		p.bar.Describe(p.what + " " + note)
	}
	_ = p.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
}

// close ends the line of the bar.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Exit()
	}
}
