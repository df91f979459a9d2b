package bench

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/spf13/cobra"
)

func newRate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rate",
		Short: "Measure how close served sampling comes to the bare network at its best batch",
		Long: `Rate evaluates a network in batches of several sizes, each by a program that does nothing else, and in turn
draws samples over Flight, with a client on the loopback interface. The server chooses its batches itself. The table
has evaluations of an image a second, and those served over the best of the bare program. See bench/docs/sampling.md.`,
		Example: `  anisoflight-bench rate --network digits --n 1024
  anisoflight-bench rate --network cifar10 --n 16 --nfe 3 --batches 4,8,16 --rounds 3
  anisoflight-bench rate --device cuda --precision bfloat16 --network cifar10 --n 1024 --batches 64,128,256,512`,
	}
	var flags modelFlags
	var b rateBench
	f := cmd.Flags()
	flags.register(f, "digits")
	positiveFlag(f, &b.N, "n", 256, "`samples` of the request")
	positiveFlag(f, &b.NFE, "nfe", 9, "`evaluations` for each sample")
	positiveFlag(f, &b.Rounds, "rounds", 9, "`number` of rounds")
	f.IntSliceVar(&b.Batches, "batches", []int{8, 16, 32, 64, 128}, "`sizes` of the bare program's batches")
	return runReport(cmd, func(ctx context.Context) (report, error) {
		return flags.withDevice(func(dev *device.Device, m *checkpoint.Model, at kernels.Precision) (report, error) {
			return b.measure(ctx, dev, m, at, progress(cmd))
		})
	})
}

// rateBench compares the bare network with served sampling. Rates are evaluations of an image a second.
type rateBench struct {
	N       int             `json:"n"`
	NFE     int             `json:"nfe"`
	Rounds  int             `json:"rounds"`
	Batches []int           `json:"batches"`
	Served  kernels.Buckets `json:"served_batches"`

	Bare  []quartiles `json:"bare"` // by batch
	Rate  quartiles   `json:"rate"`
	Ratio quartiles   `json:"ratio"` // of Rate to the best of Bare in the same round
}

func (b *rateBench) measure(
	ctx context.Context, dev *device.Device, m *checkpoint.Model, at kernels.Precision, progress func(done, total int),
) (_ *rateBench, err error) {
	var bare []program
	for _, n := range b.Batches {
		on, err := openModel(dev, m, modelOptions{batch: n, precision: at})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, on.close()) }()
		p, err := on.program(ctx, "forward")
		if err != nil {
			return nil, err
		}
		bare, b.Served = append(bare, p), on.model.Buckets()
	}
	server, err := serveModel(ctx, dev, m, engine.Config{Precision: at}, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	request := api.Sample{Model: servedModel, N: &b.N, NFE: b.NFE, Solver: "ab", Output: api.Output{DType: "float32"}}
	s := series{}
	for round := range b.Rounds + 1 { // the first compiles
		best := 0.0
		for i, p := range bare {
			wall, _, err := measureTime(func() error { return p.run(ctx) })
			if err != nil {
				return nil, err
			}
			rate := float64(b.Batches[i]) / wall
			if best = max(best, rate); round > 0 {
				s.add(fmt.Sprint(i), rate)
			}
		}
		wall, _, err := measureTime(func() error { return drawSamples(ctx, server.clients[0], request) })
		if err != nil {
			return nil, err
		}
		if rate := float64(b.N*b.NFE) / wall; round > 0 {
			s.add("served", rate)
			s.add("ratio", rate/best)
			progress(round, b.Rounds)
		}
	}
	for i := range bare {
		b.Bare = append(b.Bare, s.quartiles(fmt.Sprint(i)))
	}
	b.Rate, b.Ratio = s.quartiles("served"), s.quartiles("ratio")
	return b, nil
}

func (b *rateBench) table(t *tabwriter.Writer) {
	fmt.Fprintf(t, "%d rounds; medians (quartiles)\n\nbatch\tevaluations of an image a second\n", b.Rounds)
	for i, n := range b.Batches {
		fmt.Fprintf(t, "%d\t%s\n", n, b.Bare[i].text("%.4g"))
	}
	fmt.Fprintf(t, "served, in batches of %d\t%s\n", b.Served.Large, b.Rate.text("%.4g"))
	fmt.Fprintf(t, "served over the best\t%s\n", b.Ratio.text("%.3f"))
}
