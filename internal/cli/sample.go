package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

// sampleRequest are the fields of the request Sample, by their own names.
var sampleRequest = []option{
	{name: "model", needed: true, usage: "`name` of the model"},
	{name: "n", kind: whole, usage: "`number` of images; a conditional model draws their labels (default 64 without --labels)"},
	{name: "labels", kind: object, usage: "one image per label: a `list` such as 0,1,2 or 0-9"},
	{name: "seed", kind: seed, usage: "image i is made from seed + i alone (default 0)"},
	{name: "steps", kind: whole, usage: "solver steps (default 18 without --nfe)"},
	{name: "nfe", kind: whole, usage: "evaluations of the network, instead of steps: takes the most steps that fit (9 of heun needs --second-point endpoint)"},
	{name: "solver", usage: "`name`: " + strings.Join(api.Solvers, " ") + " (default heun)"},
	{name: "order", kind: whole, usage: "of ab, ipndm, unipc and deis"},
	{name: "variant", usage: "of unipc: bh1 or bh2 (default)"},
	{name: "second_point", usage: "of heun: midpoint (default) or endpoint"},
	{name: "grid", kind: object, usage: "schedule (default), edm, polynomial, logsnr, geodesic, or JSON such as {\"sigma\":[80,1,0]} or {\"table\":\"ays-sd15\"}"},
	{name: "schedule", kind: object, usage: "a schedule's name, edm, or JSON such as {\"edm\":{\"T\":400}} (default: the model's own)"},
	{name: "lower_order_final", kind: toggle, usage: "of dpmpp and unipc: lower the order towards the end (default true)"},
	{name: "denoise_to_zero", kind: toggle, usage: "end with one denoising step to t = 0"},
	{name: "warmup", usage: "first step of ab, ipndm, dpmpp and deis: euler (default), or heun, at no further evaluation"},
	{name: "S_churn", kind: number, usage: "of euler and heun: EDM's stochastic churn (default 0: none)"},
	{name: "S_min", kind: number, usage: "churn from this noise level on (default 0)"},
	{name: "S_max", kind: number, usage: "churn up to this noise level (default: no bound)"},
	{name: "S_noise", kind: number, usage: "standard deviation of the noise that churn adds (default 1)"},
	{name: "afs", kind: toggle, usage: "take the first step without the network"},
}

var sampleSpec = spec{
	use:   "sample",
	short: "Draw images from a model into a PNG or NPZ file",
	long: `Sample draws images and writes them to one file: a PNG with all of
them in a grid, or an NPZ with the arrays images (NHWC), labels and seeds. Image i
depends on the model, the settings and seed + i alone, not on how many are drawn.`,
	example: `  anisoflight sample --model digits --n 64 --steps 9 --out digits.png
  anisoflight sample --model digits --labels 0-9 --solver ab --nfe 5
  anisoflight sample --model digits --n 10000 --nfe 9 --second-point endpoint --out digits.npz`,
	options: slices.Concat(sampleRequest, []option{
		{name: "out", def: "samples.png", usage: "`file` to write: .png or .npz"},
		{name: "columns", kind: whole, usage: "images in a row of the PNG (default: as square as possible)"},
		{name: "scale", kind: whole, usage: "pixels of the PNG per pixel of an image (default: images of about 64)"},
		precisionOption,
	}, folderOptions, gpuOptions),
	run: runSample,
}

func runSample(ctx context.Context, e env) error {
	write, err := writerFor(e.text("out"))
	if err != nil {
		return usagef(e.cmd, "%w", err)
	}
	fields := e.request(sampleRequest)
	if err := completeSample(fields); err != nil {
		return usagef(e.cmd, "%w", err)
	}
	var got images
	if err := collect(ctx, e, "Sample", fields, "sampling", got.add); err != nil {
		return err
	}
	if err := write(e.text("out"), got, int(e.whole("columns")), int(e.whole("scale"))); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "%s: %d images of %d×%d×%d, %d evaluations each\n", e.text("out"), got.n, got.h, got.w, got.c, got.nfe)
	if asked := e.whole("nfe"); asked > int64(got.nfe) {
		fmt.Fprintf(e.out, "warning: --nfe %d: whole steps of the solver take %d evaluations; %s\n", asked, got.nfe, cure(fields, asked, got.nfe))
	}
	return nil
}

// cure returns what to do where whole steps take fewer evaluations than asked for: only Heun's midpoint form on the
// grid schedule has another form that takes odd numbers.
func cure(fields map[string]any, asked int64, taken int32) string {
	is := func(name, value string) bool { return fields[name] == nil || fields[name] == value }
	if asked%2 == 1 && is("solver", "heun") && is("second_point", "midpoint") && is("grid", "schedule") {
		return fmt.Sprintf("--second-point endpoint takes %d", asked)
	}
	return fmt.Sprintf("ask for %d, or give --steps", taken)
}

// completeSample fills in what a command line may leave out but a request may not.
func completeSample(fields map[string]any) error {
	switch labels := fields["labels"].(type) {
	case string, float64, int: // a list, or a single label as JSON or YAML reads it
		list, err := parseLabels(fmt.Sprint(labels))
		if err != nil {
			return err
		}
		fields["labels"] = list
	case nil:
		if _, ok := fields["n"]; !ok {
			fields["n"] = 64
		}
	}
	grid, explicit := fields["grid"].(map[string]any)
	if explicit {
		_, inT := grid["t"]
		_, inSigma := grid["sigma"]
		explicit = inT || inSigma
	}
	_, steps := fields["steps"]
	_, nfe := fields["nfe"]
	if !steps && !nfe && !explicit {
		fields["steps"] = 18
	}
	return nil
}

// parseLabels reads a list of labels and ranges of labels, such as 0-3,7,7.
func parseLabels(s string) ([]int32, error) {
	const most = 1 << 20
	var labels []int32
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		from, to := part, part
		if i := strings.LastIndexByte(part, '-'); i > 0 {
			from, to = part[:i], part[i+1:]
		}
		a, err1 := strconv.ParseInt(from, 10, 32)
		b, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || b < a || b-a >= most {
			return nil, fmt.Errorf("--labels must be a list such as 0,1,2 or 0-9, got %q", s)
		}
		for l := a; l <= b; l++ {
			labels = append(labels, int32(l))
		}
	}
	return labels, nil
}

type imageWriter func(path string, got images, columns, scale int) error

func writerFor(path string) (imageWriter, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png":
		return writePNG, nil
	case ".npz":
		return func(path string, got images, _, _ int) error { return writeNPZ(path, got) }, nil
	}
	return nil, fmt.Errorf("--out must end in .png or .npz, got %q", path)
}

// showMeta moves a bar by the progress that an operation reports: the steps of the
// part in work, with the parts done in words, or what has been sent.
func showMeta(p *progress, m api.Meta) {
	switch m["event"] {
	case "progress":
		note := ""
		if total := integer(m["total"]); total > 0 {
			note = fmt.Sprintf("%d/%d", integer(m["done"]), total)
		}
		p.set(integer(m["step"]), integer(m["steps"]), note)
	case "batch":
		p.set(integer(m["done"]), integer(m["total"]), "")
	}
}

func integer(v any) int64 {
	n, _ := v.(float64) // as every number in JSON
	return int64(n)
}
