package search

import "time"

// Progress reports the parts of long work as one whole, in thousandths.
type Progress struct {
	report             func(part string, done, total int)
	total              int // shares of all parts
	part               string
	begun, share       int // thousandths before the part in work, and its own
	evaluated, planned int // evaluations of it, if they are counted

	began   time.Time // of the part in work
	seconds map[string]float64
}

// NewProgress returns the progress of work that has not begun. report may be nil.
func NewProgress(report func(part string, done, total int)) *Progress {
	if report == nil {
		report = func(string, int, int) {}
	}
	return &Progress{report: report, total: 1000, seconds: map[string]float64{}}
}

// Begin ends the current part, even if it is not complete, and begins the next, with a planned number of evaluations.
func (p *Progress) Begin(part string, share, planned int) {
	p.stop()
	p.begun += p.share
	p.part, p.share, p.evaluated, p.planned = part, share, 0, max(1, planned)
	p.At(0, 1)
}

// stop adds the time of the current part to its seconds.
func (p *Progress) stop() {
	now := time.Now()
	if p.part != "" {
		p.seconds[p.part] += now.Sub(p.began).Seconds()
	}
	p.began = now
}

// Seconds returns the duration of each part.
func (p *Progress) Seconds() map[string]float64 {
	p.stop()
	return p.seconds
}

// At reports that done of total units of the current part are done.
func (p *Progress) At(done, total int) {
	p.report(p.part, p.begun+int(int64(p.share)*int64(done)/int64(total)), p.total)
}

// Add reports n further evaluations of the current part.
func (p *Progress) Add(n int) {
	p.evaluated = min(p.evaluated+n, p.planned)
	p.At(p.evaluated, p.planned)
}
