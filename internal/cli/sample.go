package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// sampleRequest are the fields of Sample that say what is drawn, not how it travels.
var sampleRequest = connect.Without(connect.Fields(new(api.Sample),
	command.Option{Name: "n", Otherwise: "64 without --labels"},
	command.Option{Name: "labels", Usage: "one image per label: a list such as 0,1,2 or 0-9"},
	command.Option{Name: "steps", Otherwise: "18 without --nfe"},
), "offset", "weights", "every", "dtype", "layout", "batch_bytes")

var sampleSpec = command.Spec{
	Use:   "sample",
	Short: "Draw images from a model into a PNG or NPZ file",
	Long: `Sample draws images and writes them to one file: a PNG with all of
them in a grid, or an NPZ with the arrays images (NHWC), labels and seeds. Fields and
latents are float32 in their own units there; a PNG shows each of 1 or 3 channels from
its least to its greatest value. Image i
depends on the model, the settings and seed + i alone, not on how many are drawn.`,
	Example: `  anisoflight sample --model digits --n 64 --steps 9 --out digits.png
  anisoflight sample --model digits --labels 0-9 --solver ab --nfe 5
  anisoflight sample --model digits --n 10000 --nfe 9 --second-point endpoint --out digits.npz`,
	Options: slices.Concat(sampleRequest, []command.Option{
		{Name: "out", Default: "samples.png", Usage: "`file` to write: .png or .npz"},
		{Name: "columns", Kind: command.Whole, Usage: "images in a row of the PNG", Otherwise: "as square as possible"},
		{
			Name: "scale", Kind: command.Whole,
			Usage:     "pixels of the PNG per pixel of an image",
			Otherwise: "images of about 64",
		},
		connect.PrecisionOption,
	}, connect.FolderOptions, connect.GPUOptions),
	Run: runSample,
}

func runSample(ctx context.Context, e command.Env) error {
	write, err := writerFor(e.Text("out"))
	if err != nil {
		return command.Usagef(e.Cmd, "%w", err)
	}
	if err := command.CheckOut(e.Text("out")); err != nil {
		return err
	}
	fields := e.Request(sampleRequest)
	if err := completeSample(fields); err != nil {
		return command.Usagef(e.Cmd, "%w", err)
	}
	var got images
	if err := connect.Collect(ctx, e, "Sample", fields, "sampling", got.add); err != nil {
		return err
	}
	if err := write(e.Text("out"), got, int(e.Whole("columns")), int(e.Whole("scale"))); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%s: %d images of %d×%d×%d, %d evaluations each\n", e.Text("out"), got.n, got.h, got.w, got.c,
		got.nfe)
	return nil
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
