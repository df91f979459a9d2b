package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/stepcost"
)

// digitsNetwork is that of configs/digits-pretrain.yaml.
const digitsNetwork = `{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":10,` +
	`"model_channels":16,"channel_mult":[1,2],"num_blocks":1,"attn_resolutions":[4],"dropout":0}`

var benchEstimatorSpec = spec{
	use:   "estimator",
	short: "Measure what a training step costs by mode of the estimator",
	long: `Estimator takes training steps with each mode of the estimator of the schedule's
gradient in turn and compares their times with explicit's beside them: medians, and
quartiles in brackets. Loss is a step without that gradient: with the network trained,
a plain training step. Memory is what the compiler counts for the step's program:
arguments, outputs and temporaries; estimated is what a run is told before it is
compiled.`,
	example: `  anisoflight bench estimator
  anisoflight bench estimator --train-network=false --basis dct --batch 128
  anisoflight bench estimator --network '{"img_resolution":32,"img_channels":3,"model_channels":32}' --json`,
	options: []option{
		{name: "network", kind: object, def: digitsNetwork, usage: "`JSON` of the network: EDM's keyword arguments, as in a model's config.json"},
		{name: "batch", kind: whole, def: "64", usage: "`images` per step"},
		{name: "basis", def: "none", usage: "`basis` of the subspaces: none or dct"},
		{name: "train_network", kind: toggle, def: "true", usage: "train the network in the step, too"},
		{name: "repeats", kind: whole, def: "15", usage: "`steps` per mode"},
		deviceOption,
	},
	json: true,
	run:  runBenchEstimator,
}

// estimatorCost is what bench estimator prints as JSON.
type estimatorCost struct {
	Device       string         `json:"device"`
	Parameters   int            `json:"parameters"`
	Batch        int            `json:"batch"`
	TrainNetwork bool           `json:"train_network"`
	Rows         []stepcost.Row `json:"rows"`
}

func runBenchEstimator(ctx context.Context, e env) error {
	for _, count := range []string{"batch", "repeats"} {
		if n := e.whole(count); n < 1 {
			return usagef(e.cmd, "--%s is %d; it is at least 1", count, n)
		}
	}
	text, err := json.Marshal(e.get("network").value)
	if err != nil {
		return err
	}
	cfg, err := unet.ParseConfig(text)
	if err != nil {
		return usagef(e.cmd, "--network: %w", err)
	}
	net, err := unet.New(cfg)
	if err != nil {
		return usagef(e.cmd, "--network: %w", err)
	}
	b := basis.None(cfg.ImgResolution, cfg.ImgResolution)
	switch e.text("basis") {
	case "none":
	case "dct":
		if b, err = basis.DCT(cfg.ImgResolution, cfg.ImgResolution, 0); err != nil {
			return err
		}
	default:
		return usagef(e.cmd, "--basis is none or dct, not %q", e.text("basis"))
	}
	dev, err := openDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	cost := estimatorCost{Device: dev.Report().Name, Batch: int(e.whole("batch")), TrainNetwork: e.toggle("train_network")}
	for _, p := range net.Params() {
		cost.Parameters += p.Size()
	}
	p := newProgress(e.err, e.log, "estimator")
	cost.Rows, err = stepcost.Measure(ctx, dev, stepcost.Settings{
		Net: net, Basis: b, Batch: cost.Batch, Frozen: !cost.TrainNetwork, Repeats: int(e.whole("repeats")),
		Progress: func(done, total int) { p.set(int64(done), int64(total), "") },
	})
	p.close()
	if err != nil {
		return err
	}
	if e.json {
		return printJSON(e.out, cost)
	}
	return cost.print(e.out)
}

func (c estimatorCost) print(w io.Writer) error {
	network := "trained"
	if !c.TrainNetwork {
		network = "frozen"
	}
	fmt.Fprintf(w, "%s, network %s, %.3g M parameters, batch %d\n", c.Device, network, float64(c.Parameters)/1e6, c.Batch)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "MODE\tMS PER STEP\tOF EXPLICIT\tGFLOP\tMEMORY\tOF EXPLICIT\tOF LOSS\tESTIMATED")
	explicit, loss := c.Rows[0].Memory, c.Rows[len(c.Rows)-1].Memory
	for _, r := range c.Rows {
		memory := "unknown\t\t"
		if r.Memory != nil && explicit != nil && loss != nil {
			total := float64(r.Memory.Total())
			memory = fmt.Sprintf("%.1f MiB\t%.2f\t%.2f", total/(1<<20), total/float64(explicit.Total()), total/float64(loss.Total()))
		}
		fmt.Fprintf(t, "%s\t%.1f [%.1f, %.1f]\t%.2f [%.2f, %.2f]\t%.2f\t%s\t%.1f MiB\n", r.Mode, 1e3*r.Median, 1e3*r.Low, 1e3*r.High,
			r.Ratio, r.RatioLo, r.RatioHi, float64(r.FLOPs)/1e9, memory, float64(r.Estimate.Total())/(1<<20))
	}
	return t.Flush()
}
