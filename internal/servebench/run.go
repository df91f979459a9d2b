package servebench

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/anisoflight/anisoflight/internal/process"
	"github.com/anisoflight/anisoflight/internal/stat"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Config says what to measure. The zero value of each field means its default.
type Config struct {
	Model    *checkpoint.Model // required
	N        int               // samples of the one large request; default 256
	NFE      int               // evaluations for each sample; default 9
	Clients  int               // that ask at once; default 8
	Each     int               // samples of each of their requests; default 4
	Requests int               // of each of them in a round; default 4
	Seats    int64             // of the server; default the engine's own
	Rounds   int               // default 9
	Progress func(round int)
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *int
		def   int
	}{{&c.N, 256}, {&c.NFE, 9}, {&c.Clients, 8}, {&c.Each, 4}, {&c.Requests, 4}, {&c.Rounds, 9}} {
		if *d.field <= 0 {
			*d.field = d.def
		}
	}
	if c.Progress == nil {
		c.Progress = func(int) {}
	}
	return c
}

// Report is what Run measured.
type Report struct {
	N        int `json:"n"`
	NFE      int `json:"nfe"`
	Clients  int `json:"clients"`
	Each     int `json:"each"`
	Requests int `json:"requests"`
	Rounds   int `json:"rounds"`

	Overhead Overhead `json:"overhead"`
	Crowd    Crowd    `json:"crowd"`
}

// Overhead compares one request for N samples over Flight with the same request to the engine in the same process.
type Overhead struct {
	Engine stat.Stat `json:"engine_s"`
	Flight stat.Stat `json:"flight_s"`
	Wall   stat.Stat `json:"wall_ratio"` // Flight over Engine, within a round
	CPU    stat.Stat `json:"cpu_ratio"`  // the same in processor time, the client's included
}

// Crowd compares clients that ask at once for few samples each, with and without joint evaluations.
type Crowd struct {
	Apart    Traffic   `json:"apart"`
	Together Traffic   `json:"together"`
	Rate     stat.Stat `json:"rate_ratio"`    // Together over Apart, within a round
	Latency  stat.Stat `json:"latency_ratio"` // of the medians
	Joined   float64   `json:"joined"`        // share of the evaluations that another's turn took along
}

// Traffic is what a crowd meets.
type Traffic struct {
	Rate    stat.Stat `json:"samples_per_s"`
	Latency stat.Stat `json:"latency_s"` // median of a round's requests
	Worst   stat.Stat `json:"worst_s"`   // of a round's requests
}

// Run measures on dev.
func Run(ctx context.Context, dev *device.Device, cfg Config) (report *Report, err error) {
	cfg = cfg.withDefaults()
	dir, err := os.MkdirTemp("", "anisoflight-bench")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newBench(ctx, dev, dir, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	var rounds series
	for round := range cfg.Rounds + 1 { // the first one compiles, and does not count
		if round > 0 {
			cfg.Progress(round - 1)
		}
		if err := b.round(ctx, round, &rounds); err != nil {
			return nil, err
		}
		if round == 0 {
			rounds = series{}
			b.joined = 0
		}
	}
	r := rounds.sum(cfg)
	turns := float64(cfg.Rounds * cfg.Clients * cfg.Requests * cfg.NFE * ((cfg.Each + 7) / 8))
	r.Crowd.Joined = float64(b.joined) / turns
	return r, nil
}

// series holds what every round gave.
type series struct {
	engine, flight, engineCPU, flightCPU     []float64 // seconds
	apart, together                          []float64 // samples per second
	apartMid, togetherMid, apartMax, joinMax []float64 // seconds
}

func (s *series) sum(cfg Config) *Report {
	r := &Report{N: cfg.N, NFE: cfg.NFE, Clients: cfg.Clients, Each: cfg.Each, Requests: cfg.Requests, Rounds: cfg.Rounds}
	r.Overhead = Overhead{Engine: stat.Of(s.engine), Flight: stat.Of(s.flight),
		Wall: stat.Of(stat.Ratios(s.flight, s.engine)), CPU: stat.Of(stat.Ratios(s.flightCPU, s.engineCPU))}
	r.Crowd.Apart = Traffic{Rate: stat.Of(s.apart), Latency: stat.Of(s.apartMid), Worst: stat.Of(s.apartMax)}
	r.Crowd.Together = Traffic{Rate: stat.Of(s.together), Latency: stat.Of(s.togetherMid), Worst: stat.Of(s.joinMax)}
	r.Crowd.Rate = stat.Of(stat.Ratios(s.together, s.apart))
	r.Crowd.Latency = stat.Of(stat.Ratios(s.togetherMid, s.apartMid))
	return r
}

// timed gives the seconds that f takes, of the clock and of all processors.
func timed(f func() error) (wall, cpu float64, err error) {
	before, err := process.CPUSeconds()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := f(); err != nil {
		return 0, 0, err
	}
	wall = time.Since(start).Seconds()
	after, err := process.CPUSeconds()
	return wall, after - before, err
}
