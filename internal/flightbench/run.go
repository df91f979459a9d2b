package flightbench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/internal/stat"
)

// Config says what to measure. The zero value of each field means its default.
type Config struct {
	Bytes     int             // that every measure moves in a round; default 256 MiB
	Rounds    int             // default 9
	Latencies int             // requests for one row in a round; default 50
	Python    string          // an interpreter that has the package anisoflight; without one pyarrow is not measured
	Progress  func(round int) // called before each round; may be nil
}

func (c Config) withDefaults() Config {
	if c.Bytes <= 0 {
		c.Bytes = 256 << 20
	}
	if c.Rounds <= 0 {
		c.Rounds = 9
	}
	if c.Latencies <= 0 {
		c.Latencies = 50
	}
	if c.Progress == nil {
		c.Progress = func(int) {}
	}
	c.Bytes -= c.Bytes % batchBytes
	c.Bytes = max(c.Bytes, batchBytes)
	return c
}

// Report is what Run measured.
type Report struct {
	Bytes    int       `json:"bytes"` // in a round
	Rounds   int       `json:"rounds"`
	TCP      stat.Stat `json:"tcp_gb_per_s"` // GB are 10⁹ bytes
	Memcpy   stat.Stat `json:"memcpy_gb_per_s"`
	Measures []Measure `json:"measures"`
}

// Measure is one operation by one client. An exchange moves its bytes both ways; they are counted once.
type Measure struct {
	Operation    string    `json:"operation"`
	Client       string    `json:"client"`
	Rate         stat.Stat `json:"gb_per_s"`
	Stock        stat.Stat `json:"stock_gb_per_s"` // of arrow-go's stock service and, in Go, its stock client
	OfTCP        stat.Stat `json:"of_tcp"`         // Rate over TCP's, within a round
	OfStock      stat.Stat `json:"of_stock"`       // Rate over Stock, within a round
	Latency      stat.Stat `json:"latency_us"`     // of a request for one row
	StockLatency stat.Stat `json:"stock_latency_us"`
}

// operations are what is measured.
var operations = []string{"get", "put", "exchange", "action"}

// client does an operation a number of times and gives how long each took.
type client func(ctx context.Context, operation string, rows, times int) ([]time.Duration, error)

// series holds what one client gave for one operation, round by round.
type series struct {
	operation, client string
	own, stock        client
	rate, stockRate   []float64 // GB/s
	tcp               []float64 // beside it
	latency           []float64 // µs
	stockLatency      []float64
}

// Run measures.
func Run(ctx context.Context, cfg Config) (report *Report, err error) {
	cfg = cfg.withDefaults()
	b, err := newBench(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var tcp, copied []float64
	for round := range cfg.Rounds {
		cfg.Progress(round)
		copied = append(copied, rate(cfg.Bytes, memcpy(b.pixels, cfg.Bytes)))
		for i := range b.series {
			took, err := bareTCP(ctx, cfg.Bytes)
			if err != nil {
				return nil, err
			}
			s := &b.series[i]
			s.tcp = append(s.tcp, rate(cfg.Bytes, took))
			if err := s.measure(ctx, cfg, round); err != nil {
				return nil, err
			}
			tcp = append(tcp, s.tcp[round])
		}
	}
	report = &Report{Bytes: cfg.Bytes, Rounds: cfg.Rounds, TCP: stat.Of(tcp), Memcpy: stat.Of(copied)}
	for _, s := range b.series {
		report.Measures = append(report.Measures, s.sum())
	}
	return report, nil
}

// measure takes one round, every other time the stock service first.
func (s *series) measure(ctx context.Context, cfg Config, round int) error {
	own := func() error { return timed(ctx, cfg, s.own, s.operation, &s.rate, &s.latency) }
	stock := func() error { return timed(ctx, cfg, s.stock, s.operation, &s.stockRate, &s.stockLatency) }
	if round%2 == 0 {
		own, stock = stock, own
	}
	if err := own(); err != nil {
		return err
	}
	return stock()
}

// timed measures a client's rate and its latency, and appends both.
func timed(ctx context.Context, cfg Config, do client, operation string, rates, latencies *[]float64) error {
	took, err := do(ctx, operation, cfg.Bytes/rowBytes, 1)
	if err != nil {
		return err
	}
	*rates = append(*rates, rate(cfg.Bytes, took[0]))
	if took, err = do(ctx, operation, 1, cfg.Latencies); err != nil {
		return err
	}
	slices.Sort(took)
	*latencies = append(*latencies, float64(took[len(took)/2].Nanoseconds())/1e3)
	return nil
}

func (s *series) sum() Measure {
	return Measure{Operation: s.operation, Client: s.client, Rate: stat.Of(s.rate), Stock: stat.Of(s.stockRate),
		OfTCP: stat.Of(stat.Ratios(s.rate, s.tcp)), OfStock: stat.Of(stat.Ratios(s.rate, s.stockRate)),
		Latency: stat.Of(s.latency), StockLatency: stat.Of(s.stockLatency)}
}

// rate gives GB/s.
func rate(bytes int, took time.Duration) float64 { return float64(bytes) / float64(took.Nanoseconds()) }
