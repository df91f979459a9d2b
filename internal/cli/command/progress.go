package command

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows how far a long command is: a bar on a terminal, else a log line
// now and then.
type Progress struct {
	bar  *progressbar.ProgressBar
	out  io.Writer
	log  *slog.Logger
	what string
	next time.Time // of the next log line
	now  func() time.Time
	from struct { // what was done when progress was first reported, and when that was
		done int64
		at   time.Time
	}
	full bool // done has reached the total
}

const logEvery = 10 * time.Second

// NewProgress shows what is being done on w: a bar where that is a terminal, else lines of the log.
func NewProgress(w io.Writer, log *slog.Logger, what string) *Progress {
	p := &Progress{out: w, log: log, what: what, now: time.Now}
	p.next = p.now().Add(logEvery)
	if onTerminal(w) {
		p.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(),
			progressbar.OptionShowElapsedTimeOnFinish(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetSpinnerChangeInterval(0), // else it draws on after Exit
			progressbar.OptionFullWidth(),
		)
	}
	return p
}

// Set moves to done of total; total ≤ 0 is unknown. note is shown beside it.
func (p *Progress) Set(done, total int64, note string) {
	p.full = total > 0 && done >= total
	if p.bar == nil {
		now := p.now()
		if p.from.at.IsZero() {
			p.from.done, p.from.at = done, now
		}
		if now.After(p.next) {
			p.next = now.Add(logEvery)
			about := []any{"done", done, "total", total, "note", note}
			if left := p.left(done, total, now); left > 0 {
				about = append(about, "left", left.Round(time.Second).String())
			}
			p.log.Info(p.what, about...)
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

// left returns how long the rest will take if it goes on as since the first report; 0 where that is not known.
func (p *Progress) left(done, total int64, now time.Time) time.Duration {
	if done <= p.from.done || total <= done {
		return 0
	}
	return time.Duration(float64(now.Sub(p.from.at)) * float64(total-done) / float64(done-p.from.done))
}

// Close leaves the bar where it is and ends its line.
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
