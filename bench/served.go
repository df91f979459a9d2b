package bench

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// servedSampler asks a server in this process for one batch of images.
type servedSampler struct {
	*modelServer
	bench   *modelBench
	request api.Sample
}

func newServed(ctx context.Context, b *modelBench) (program, error) {
	s, err := serveModel(ctx, b.dev, b.source, engine.Config{Precision: b.at}, 1)
	return &servedSampler{modelServer: s, bench: b, request: api.Sample{
		Model: servedModel, Labels: b.in.labels, NFE: sampleNFE, SecondPoint: edmHeun.SecondPoint,
		Grid:          api.Grid{Kind: api.GridEDM, SigmaMin: 0.002, SigmaMax: 80, Rho: 7},
		DenoiseToZero: edmHeun.DenoiseToZero, Output: api.Output{DType: "float32"},
	}}, err
}

func (s *servedSampler) run(ctx context.Context) error {
	_, err := sample(ctx, s.clients[0], s.request, s.bench.in.batch)
	return err
}

func (s *servedSampler) outputs(ctx context.Context) ([]safetensors.Tensor, error) {
	pixels, err := sample(ctx, s.clients[0], s.request, s.bench.in.batch)
	if err != nil {
		return nil, err
	}
	return []safetensors.Tensor{safetensors.FromFloat32s("output/sample-flight", s.bench.in.image(), pixels)}, nil
}
