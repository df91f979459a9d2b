package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// servedRate compares sampling as a server does it with the bare network, in evaluations of an image a second.
type servedRate struct {
	Batch  int     `json:"batch"` // the server's
	Bare   float64 `json:"bare"`
	Served float64 `json:"served"`
}

const (
	// doctorNetwork is the smallest network of the recipes, on which a host costs most.
	doctorNetwork = `{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":0,"model_channels":16,
		"channel_mult":[1,2],"num_blocks":1,"attn_resolutions":[4],"dropout":0}`
	doctorBatches = 2 // of a request
	doctorNFE     = 5
	doctorRounds  = 2 // of which the fastest counts
)

// measureRate samples with a small network from a temporary folder.
func measureRate(ctx context.Context, dev *device.Device) (_ *servedRate, err error) {
	net, err := unet.Parse([]byte(doctorNetwork))
	if err != nil {
		return nil, err
	}
	m := &checkpoint.Model{Net: net, Values: net.Init(1)}
	on, err := kernels.NewModel(dev, net, nil)
	if err != nil {
		return nil, err
	}
	defer on.Close()
	out := &servedRate{Batch: on.Buckets().Large}
	bare, err := bareRate(ctx, on, m.Values, out.Batch)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "anisoflight-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Mkdir(filepath.Join(dir, "models"), 0o700); err != nil {
		return nil, err
	}
	if err := checkpoint.SaveModel(filepath.Join(dir, "models", "small"), m, false); err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, engine.Config{Dir: dir, Device: dev, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	n := doctorBatches * out.Batch
	body, err := json.Marshal(map[string]any{"model": "small", "n": n, "nfe": doctorNFE, "solver": "ab"})
	if err != nil {
		return nil, err
	}
	call, err := api.Operations().Call(api.ByGet, "Sample", body)
	if err != nil {
		return nil, err
	}
	sample, err := fastest(func() error {
		job, err := e.Prepare(ctx, call)
		if err != nil {
			return err
		}
		return job.Run(ctx, func(api.Event) error { return nil })
	})
	out.Bare, out.Served = bare, float64(n*doctorNFE)/sample
	return out, err
}

// bareRate evaluates a network in batches of one size.
func bareRate(ctx context.Context, on *kernels.Model, values [][]float32, batch int) (float64, error) {
	weights, err := on.Upload(values)
	if err != nil {
		return 0, err
	}
	defer weights.Release()
	t, err := on.NewTrajectory(weights, make([]float32, batch*on.Pixels()), nil, 1, batch)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	g := slices.Repeat([]float64{1}, batch)
	seconds, err := fastest(func() error {
		for range doctorBatches * doctorNFE {
			if err := t.Evaluate(ctx, g); err != nil {
				return err
			}
		}
		return t.X(make([]float32, batch*on.Pixels()))
	})
	return float64(doctorBatches*doctorNFE*batch) / seconds, err
}

// fastest returns the shortest time of some runs, in seconds, after one that compiles.
func fastest(f func() error) (float64, error) {
	best := math.Inf(1)
	for round := range doctorRounds + 1 {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		if round > 0 {
			best = min(best, time.Since(began).Seconds())
		}
	}
	return best, nil
}
