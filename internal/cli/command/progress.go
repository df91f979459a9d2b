package command

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows the progress of a long command: a bar on a terminal, else a log line every logEvery.
type Progress struct {
	bar  *progressbar.ProgressBar
	out  io.Writer
	log  *slog.Logger
	what string
	next time.Time // of the next log line
	full bool      // done has reached the total
}

const logEvery = 10 * time.Second

// NewProgress begins to show the progress of the work called what: as a bar if w is a terminal, else in the log.
func NewProgress(w io.Writer, log *slog.Logger, what string) *Progress {
	p := &Progress{out: w, log: log, what: what, next: time.Now().Add(logEvery)}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(),
			progressbar.OptionShowElapsedTimeOnFinish(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetSpinnerChangeInterval(0), // else it still draws after Exit
			progressbar.OptionFullWidth(),
		)
	}
	return p
}

// Set shows that done of total are finished; total ≤ 0 if it is not known. The note may be empty.
func (p *Progress) Set(done, total int64, note string) {
	p.full = total > 0 && done >= total
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

// Close ends the line of the bar.
func (p *Progress) Close() {
	if p.bar == nil {
		return
	}
	if p.full {
		_ = p.bar.Finish() // draws what the throttle held back
	} else {
		_ = p.bar.Exit()
	}
	fmt.Fprintln(p.out)
}
