package cli

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/train/data"
)

// sampleRequest lists the fields of Sample except those about transport.
var sampleRequest = slices.DeleteFunc(connect.Fields(new(api.Sample),
	command.Option{Name: "n", Otherwise: "64 without --labels"},
	command.Option{Name: "labels", Usage: "one image per label: a list such as 0,1,2 or 0-9"},
	command.Option{Name: "steps", Otherwise: "18 without --nfe and --plan"},
	command.Option{Name: "plan", Usage: "name of a stored plan, or its `file`, which ends in .json, in place of a solver"},
), func(o command.Option) bool {
	return slices.Contains([]string{"offset", "weights", "every", "dtype", "layout", "batch_bytes"}, o.Name)
})

var sampleSpec = command.Spec{
	Use:   "sample",
	Short: "Draw images from a model into a PNG or NPZ file",
	Long: `Sample draws images and writes them to one file: a PNG with all of them in a grid, or an
NPZ with the arrays images (NHWC), labels and seeds. Image i depends only on the model,
the settings and seed + i, not on the number of images.

If the model's data are not images, the NPZ has float32 in the data's units, and the PNG
shows each of 1 or 3 channels from its minimum to its maximum.`,
	Example: `  anisoflight sample --model digits --n 64 --steps 9 --out digits.png
  anisoflight sample --model digits --labels 0-9 --solver ab --nfe 5
  anisoflight sample --model digits --plan five.json --out few.png
  anisoflight sample --model digits --n 10000 --nfe 9 --second-point endpoint --out digits.npz`,
	Options: slices.Concat(sampleRequest, []command.Option{
		{Name: "out", Default: "samples.png", Usage: "`file` to write: .png or .npz"},
		{
			Name: "columns", Kind: command.Whole, Usage: "number of images in a row of the PNG",
			Otherwise: "as square as possible", Bounds: `min:"1"`,
		},
		{
			Name: "scale", Kind: command.Whole, Usage: "pixels of the PNG for each pixel of an image",
			Otherwise: "images of about 64 pixels", Bounds: `min:"1" max:"256"`,
		},
		connect.PrecisionOption,
	}, connect.FolderOptions, connect.GPUOptions),
	Run: runSample,
}

func runSample(ctx context.Context, e command.Env) error {
	out := e.Text("out")
	asPNG := strings.EqualFold(filepath.Ext(out), ".png")
	if !asPNG && !strings.EqualFold(filepath.Ext(out), ".npz") {
		return command.Usagef(e.Cmd, "--out must end in .png or .npz, got %q", out)
	}
	if err := command.CheckOut(out); err != nil {
		return err
	}
	fields := e.Request(sampleRequest)
	if plan, ok := fields["plan"].(string); ok {
		whole, err := planOf(plan)
		if err != nil {
			return err
		}
		fields["plan"] = whole
	}
	if err := completeSample(fields); err != nil {
		return command.Usagef(e.Cmd, "%w", err)
	}
	var got images
	if err := connect.Collect(ctx, e, "Sample", fields, "sampling", got.add); err != nil {
		return err
	}
	write := got.writeNPZ
	if asPNG {
		write = func(w io.Writer) error { return got.writePNG(w, int(e.Whole("columns")), int(e.Whole("scale"))) }
	}
	if err := command.WriteFile(out, write); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%s: %d images of %d×%d×%d, %d evaluations each\n", out, got.n, got.h, got.w, got.c, got.nfe)
	return got.warning
}

// completeSample sets the fields that a request needs and a command line may omit.
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
	_, plan := fields["plan"]
	if !steps && !nfe && !explicit && !plan {
		fields["steps"] = 18
	}
	return nil
}

// parseLabels parses a list of labels and ranges, such as 0-3,7,7.
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

// images holds the final rows of a Sample operation.
type images struct {
	n, h, w, c int
	pixels     []uint8   // [n, h, w, c] of images; else nil
	values     []float32 // [n, h, w, c] of data in their own units; else nil
	labels     []int32   // [n]
	seeds      []uint64  // [n]
	nfe        int32
	warning    error
}

// add appends the final rows of a message and drops previews.
func (g *images) add(m client.Message) {
	if text, ok := m.Meta["warning"].(string); ok {
		g.warning = errors.New(text)
	}
	s, b := m.Schema, m.Batch
	shape := s.Columns[s.Index("sample")].Shape
	g.h, g.w, g.c = shape[0], shape[1], shape[2]
	size := g.h * g.w * g.c
	steps := api.ColumnOf[int32](s, b, "step")
	labels, seeds := api.ColumnOf[int32](s, b, "label"), api.ColumnOf[uint64](s, b, "seed")
	nfe := api.ColumnOf[int32](s, b, "nfe")
	for i := range b.Rows {
		if steps[i] >= 0 {
			continue
		}
		g.n++
		switch v := b.Cols[s.Index("sample")].(type) {
		case []uint8:
			g.pixels = append(g.pixels, v[i*size:(i+1)*size]...)
		case []float32:
			g.values = append(g.values, v[i*size:(i+1)*size]...)
		}
		g.labels = append(g.labels, labels[i])
		g.seeds = append(g.seeds, seeds[i])
		g.nfe = nfe[i]
	}
}

// writePNG draws all images in a grid, row by row.
func (g images) writePNG(w io.Writer, columns, scale int) error {
	if g.c != 1 && g.c != 3 {
		return errors.New("a PNG needs 1 or 3 channels; write a .npz instead")
	}
	if columns <= 0 {
		columns = int(math.Ceil(math.Sqrt(float64(g.n))))
	}
	if scale <= 0 {
		scale = max(1, 64/max(g.h, 1))
	}
	if g.values != nil {
		g.pixels = toBytes(g.values, g.c)
	}
	return png.Encode(w, g.grid(min(columns, g.n), scale))
}

// toBytes maps values [… c] to bytes: in each channel the minimum to 0 and the maximum to 255. What is not
// finite is 0.
func toBytes(values []float32, c int) []uint8 {
	out := make([]uint8, len(values))
	for k := range c {
		low, high := math.Inf(1), math.Inf(-1)
		for i := k; i < len(values); i += c {
			if v := float64(values[i]); setting.Finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
		if high == low {
			high++
		}
		for i := k; i < len(values); i += c {
			if v := float64(values[i]); setting.Finite(v) {
				out[i] = uint8(math.RoundToEven(255 * (v - low) / (high - low)))
			}
		}
	}
	return out
}

// writeNPZ writes the arrays images [n, h, w, c], labels [n] and seeds [n].
func (g images) writeNPZ(w io.Writer) error {
	var values any = g.pixels
	if g.values != nil {
		values = g.values
	}
	return data.WriteNPZ(w, map[string]*data.Array{
		"images": {Shape: []int{g.n, g.h, g.w, g.c}, Values: values},
		"labels": {Shape: []int{g.n}, Values: g.labels},
		"seeds":  {Shape: []int{g.n}, Values: g.seeds},
	})
}

func (g images) grid(columns, scale int) image.Image {
	const gap = 1
	cell := func(side int) int { return side*scale + gap }
	rows := (g.n + columns - 1) / columns
	img := image.NewRGBA(image.Rect(0, 0, columns*cell(g.w)+gap, rows*cell(g.h)+gap))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for i := range g.n {
		x0, y0 := i%columns*cell(g.w)+gap, i/columns*cell(g.h)+gap
		for y := range g.h * scale {
			for x := range g.w * scale {
				p := g.pixels[((i*g.h+y/scale)*g.w+x/scale)*g.c:]
				c := color.RGBA{p[0], p[0], p[0], 255}
				if g.c == 3 {
					c.G, c.B = p[1], p[2]
				}
				img.SetRGBA(x0+x, y0+y, c)
			}
		}
	}
	return img
}
