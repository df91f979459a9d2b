package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/internal/process"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
)

// axis is one size that growth changes.
type axis struct {
	name     string
	sizes    []int
	requests []string
	most     float64 // what an exponent may be: 1, but for what the size should not touch
	set      func(w *workload, size int)
}

// Requests of growth.
const (
	sampleRequest = "sample" // images on a schedule of its own
	stepRequest   = "step"   // a training step of network and schedule with all terms of the estimator
	uploadRequest = "upload" // a data set to the server
	readRequest   = "read"   // and back
)

var (
	computing = []string{sampleRequest, stepRequest}
	storing   = []string{uploadRequest, readRequest, stepRequest}
)

var axes = []axis{
	{"pixels", []int{8 * 8, 16 * 16, 32 * 32, 64 * 64}, computing, 1, func(w *workload, n int) {
		w.batch = 4
		w.side = int(math.Sqrt(float64(n)))
	}},
	{"batch", []int{8, 16, 32, 64, 128, 256}, computing, 1, func(w *workload, n int) { w.batch = n }},
	{"evaluations", []int{5, 9, 17, 33, 65, 129}, computing[:1], 1, func(w *workload, n int) { w.nfe = n }},
	{"classes", []int{10, 100, 1000, 10000}, computing, 1, func(w *workload, n int) { w.classes, w.perClass = n, true }},
	{"knots", []int{32, 128, 512, 2048, 4096}, computing, 1, func(w *workload, n int) { w.knots = n }},
	{"subspaces", []int{2, 4, 8, 16, 32}, computing, 1, func(w *workload, n int) {
		w.side = 32
		w.batch = 8
		for i := 1; i < n; i++ {
			w.cuts = append(w.cuts, i)
		}
	}},
	{"images", []int{1000, 4000, 16000, 64000, 256000}, storing, 1, func(w *workload, n int) { w.images = n }},
}

// workload is what the requests are about.
type workload struct {
	side     int // of an image
	batch    int // images of a request and of a step
	nfe      int
	classes  int
	perClass bool // each class has a path of its own
	knots    int
	cuts     []int // of the basis dct
	images   int   // of the data set
}

// network returns the configuration of a UNet that is as deep as its images are large, so that attention, which grows
// with the square of the pixels that it sees, sees as many at every size.
func (w *workload) network() string {
	levels := []string{}
	for side := w.side; side > 8; side /= 2 {
		levels = append(levels, "1")
	}
	return fmt.Sprintf(`{"model_type":"SongUNet","img_resolution":%d,"img_channels":1,"label_dim":%d,"model_channels":16,`+
		`"channel_mult":[%s],"num_blocks":1,"attn_resolutions":[],"dropout":0}`,
		w.side, w.classes, strings.Join(append(levels, "1", "2"), ","))
}

// schedule returns a schedule file with a path for each class, where they have their own, and subspace.
func (w *workload) schedule() ([]byte, error) {
	theta, err := schedule.InitialTheta("edm", w.knots, schedule.DefaultT, schedule.DefaultG0)
	if err != nil {
		return nil, err
	}
	family := schedule.Family{Basis: "none", PerClass: w.perClass}
	if w.cuts != nil {
		family.Basis, family.Cuts = "dct", w.cuts
	}
	row := make([]schedule.Theta, len(w.cuts)+1)
	for i := range row {
		row[i] = theta
	}
	table, labels := [][]schedule.Theta{row}, []int(nil)
	if w.perClass {
		table = nil
		for label := range w.classes {
			table, labels = append(table, row), append(labels, label)
		}
	}
	s, err := schedule.FromTheta(family, labels, table, schedule.DefaultT, schedule.DefaultG0)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// data returns the images of the data set in batches, drawn as they are sent.
func (w *workload) data() client.Input {
	const rows = 1000
	shape, pixels := []int{w.side, w.side, 1}, w.side*w.side
	in := client.Input{Schema: api.Schema{Columns: []api.Column{
		{Name: "image", Type: api.Uint8, Kind: api.Tensor, Shape: shape, DimNames: []string{"H", "W", "C"}},
		{Name: "label", Type: api.Int32},
	}}}
	in.Batches = func(yield func(api.Batch) bool) {
		for from := 0; from < w.images; from += rows {
			n := min(rows, w.images-from)
			images, labels := make([]uint8, n*pixels), make([]int32, n)
			for i := range images {
				images[i] = uint8((from*pixels + i) * 2654435761 >> 13)
			}
			for i := range labels {
				labels[i] = int32((from + i) % w.classes)
			}
			if !yield(api.Batch{Rows: n, Cols: []any{images, labels}}) {
				return
			}
		}
	}
	return in
}

// measurePoint measures all requests of an axis at one size, "NAME SIZE", in this process.
func measurePoint(ctx context.Context, point string) (costs map[string]cost, err error) {
	name, number, _ := strings.Cut(point, " ")
	a, err := axisNamed(name)
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(number)
	if err != nil || size < 1 {
		return nil, fmt.Errorf("a point must be an axis and a positive whole number, got %q", point)
	}
	w := &workload{side: 8, batch: 32, nfe: 9, classes: 10, knots: 32, images: 1000}
	a.set(w, size)
	dev, err := device.Open(device.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	model, err := randomModel(w.network(), 1)
	if err != nil {
		return nil, err
	}
	before, _ := process.Resident()
	s, err := serveModel(ctx, dev, model, engine.Config{}, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	requests, err := w.requests(ctx, s.clients[0])
	if err != nil {
		return nil, err
	}
	costs = map[string]cost{}
	for _, request := range a.requests {
		if costs[request], err = costOf(func() error { return requests[request](ctx) }, before); err != nil {
			return nil, fmt.Errorf("%s: %w", request, err)
		}
	}
	return costs, nil
}

// costOf runs a request until it has taken half a second, and three times at least, after a first time that is not
// counted.
func costOf(request func() error, before int64) (cost, error) {
	if err := request(); err != nil {
		return cost{}, err
	}
	forgetPeak()
	s, spent := series{}, 0.0
	for n := 0; n < 3 || spent < 0.5; n++ {
		wall, cpu, err := timed(request)
		if err != nil {
			return cost{}, err
		}
		s.add("wall", wall)
		s.add("cpu", cpu)
		spent += wall
	}
	_, most := process.Resident()
	return cost{Wall: s.of("wall").Median, CPU: s.of("cpu").Median, Peak: float64(most - before)}, nil
}

// forgetPeak makes the most that was resident what is now, where the operating system can.
func forgetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// requests stores a data set, a schedule and a run on a server, and returns what can be asked of it.
func (w *workload) requests(ctx context.Context, c *client.Client) (map[string]func(context.Context) error, error) {
	upload := func(ctx context.Context) error {
		rows, err := c.PutDataset(ctx, api.PutDataset{Name: "data", Replace: true}, w.data())
		if err == nil && rows != int64(w.images) {
			err = fmt.Errorf("%d images of %d were stored", rows, w.images)
		}
		return err
	}
	file, err := w.schedule()
	if err != nil {
		return nil, err
	}
	if err := upload(ctx); err != nil {
		return nil, err
	}
	if _, err := c.ImportSchedule(ctx, api.ImportSchedule{Name: "paths", File: file}); err != nil {
		return nil, err
	}
	stage, family := "isotropic", map[string]any{"basis": "none", "per_class": w.perClass}
	if w.cuts != nil {
		stage, family = "anisotropic", map[string]any{"basis": "dct", "cuts": w.cuts}
	}
	config, err := json.Marshal(map[string]any{
		"stage": stage, "dataset": "data", "model": servedModel, "schedule": "paths", "init": "table",
		"estimator": "full", "batch": w.batch, "family": family,
	})
	if err != nil {
		return nil, err
	}
	run := "run"
	if _, err := c.CreateRun(ctx, api.CreateRun{Name: run, Config: config}); err != nil {
		return nil, err
	}
	labels := make([]int32, w.batch)
	for i := range labels {
		labels[i] = int32(i * w.classes / w.batch)
	}
	return map[string]func(context.Context) error{
		sampleRequest: func(ctx context.Context) error {
			_, err := sample(ctx, c, api.Sample{
				Model: servedModel, Labels: labels, NFE: w.nfe, Schedule: api.ScheduleRef{Name: "paths"},
				Output: api.Output{DType: "float32"},
			}, w.batch)
			return err
		},
		stepRequest: func(ctx context.Context) error {
			_, _, _, err := client.ReadAll(c.TrainStep(ctx, api.TrainStep{Run: run, Steps: 1}))
			return err
		},
		uploadRequest: upload,
		readRequest: func(ctx context.Context) error {
			rows := 0
			for m, err := range c.Dataset(ctx, api.Dataset{Dataset: "data"}) {
				if err != nil {
					return err
				}
				rows += m.Batch.Rows
			}
			if rows != w.images {
				return fmt.Errorf("%d images of %d arrived", rows, w.images)
			}
			return nil
		},
	}, nil
}

func axisNamed(name string) (axis, error) {
	i := slices.IndexFunc(axes, func(a axis) bool { return a.name == name })
	if i < 0 {
		return axis{}, fmt.Errorf("axes must be of %s, got %q", strings.Join(axisNames(), ", "), name)
	}
	return axes[i], nil
}

// cost is what a request takes at one size.
type cost struct {
	Wall float64 `json:"wall"` // seconds
	CPU  float64 `json:"cpu"`  // seconds of all threads, the client's included
	Peak float64 `json:"peak"` // bytes
}

func axisNames() []string {
	var names []string
	for _, a := range axes {
		names = append(names, a.name)
	}
	return names
}
