package bench

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// quartiles summarize repeated measurements.
type quartiles struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// quartilesOf returns the quartiles of values, of which there is at least one, interpolated linearly.
func quartilesOf(values []float64) quartiles {
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		x := q * float64(len(sorted)-1)
		i := int(x)
		if i+1 == len(sorted) {
			return sorted[i]
		}
		return sorted[i] + (x-float64(i))*(sorted[i+1]-sorted[i])
	}
	return quartiles{Low: at(0.25), Median: at(0.5), High: at(0.75)}
}

// text returns the median and, in brackets, the quartiles, by a format for one number.
func (q quartiles) text(format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", q.Median, q.Low, q.High)
}

// scaled returns the quartiles in a unit of which one is 1/factor.
func (q quartiles) scaled(factor float64) quartiles {
	return quartiles{Low: factor * q.Low, Median: factor * q.Median, High: factor * q.High}
}

// series holds measured values by name, one for each round.
type series map[string][]float64

func (s series) add(name string, value float64) { s[name] = append(s[name], value) }

func (s series) quartiles(name string) quartiles { return quartilesOf(s[name]) }

// ratio returns the quartiles of one measure over another, divided round by round.
func (s series) ratio(name, over string) quartiles {
	ratios := make([]float64, len(s[name]))
	for i, v := range s[name] {
		ratios[i] = v / s[over][i]
	}
	return quartilesOf(ratios)
}

// cpuSeconds returns the processor time of all threads so far, the kernel's part included.
func cpuSeconds() (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), nil
}

// measureTime returns the seconds that f takes, of the clock and of all processors.
func measureTime(f func() error) (wall, cpu float64, err error) {
	before, err := cpuSeconds()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := f(); err != nil {
		return 0, 0, err
	}
	wall = time.Since(start).Seconds()
	after, err := cpuSeconds()
	return wall, after - before, err
}
