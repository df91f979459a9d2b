package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/train/data/source"
)

func newData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Inspect images in many formats, and convert them to data sets",
		Example: `  anisoflight data inspect downloads/cifar-10-python.tar.gz
  anisoflight data convert downloads/cifar-10-python.tar.gz --name cifar10
  anisoflight data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 --transform center-crop`,
		Args: commandNamed,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range []spec{dataInspectSpec, dataConvertSpec} {
		cmd.AddCommand(s.command())
	}
	return cmd
}

const formats = `PATH is a folder or zip of PNG, JPEG or WebP images (StyleGAN's and EDM's with
dataset.json; else folders are classes), a .npz with images and labels or arr_0,
CIFAR-10's python or binary batches (a folder, a .tar.gz, one batch), Parquet or Arrow IPC
with a column image (a fixed shape tensor, or encoded images), or a stored data set.
docs/data.md has an example of each.`

var labelsOption = option{name: "labels", def: "auto", usage: "`from` where: auto (the format's own), folder (the one an image lies in), none"}

var dataInspectSpec = spec{
	use:     "inspect",
	args:    "PATH",
	short:   "Decode every image and tell what there is: sizes, classes, moments, bad files",
	long:    "Inspect decodes every image and tells what there is.\n\n" + formats,
	example: "  anisoflight data inspect downloads/afhqv2/train",
	options: []option{labelsOption},
	json:    true,
	run: func(ctx context.Context, e env) error {
		s, err := source.Open(e.args[0], source.LabelRule(e.text("labels")))
		if err != nil {
			return err
		}
		defer s.Close()
		p := newProgress(e.err, e.log, "reading")
		r, err := source.Inspect(ctx, s, func(done, total int) { p.set(int64(done), int64(total), "") })
		p.close()
		if err != nil {
			return err
		}
		if e.json {
			return printJSON(e.out, r)
		}
		return printReport(e.out, r)
	},
}

func printReport(w io.Writer, r source.Report) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "format\t%s\nimages\t%d %s\n", r.Format, r.Images, r.DType)
	const most = 10
	for i, s := range r.Sizes {
		if i == most {
			fmt.Fprintf(t, "\tand %d other sizes\n", len(r.Sizes)-most)
			break
		}
		fmt.Fprintf(t, "size\t%d×%d, %d channels: %d images\n", s.Height, s.Width, s.Channels, s.Images)
	}
	fmt.Fprintf(t, "mean\t%s\nstd\t%s\n", numbers(r.Mean), numbers(r.Std))
	if r.Hash != "" {
		fmt.Fprintf(t, "hash\t%s\n", r.Hash)
	}
	if !r.Labels {
		fmt.Fprintln(t, "classes\tnone")
	}
	for _, c := range r.Classes {
		fmt.Fprintf(t, "class %d\t%s\t%d images\n", c.Label, c.Name, c.Images)
	}
	for _, b := range r.Bad {
		fmt.Fprintf(t, "bad\t%s: %s\n", b.Name, b.Error)
	}
	if more := r.NBad - len(r.Bad); more > 0 {
		fmt.Fprintf(t, "bad\tand %d more\n", more)
	}
	return t.Flush()
}

func numbers(x []float64) string {
	out := make([]string, len(x))
	for i, v := range x {
		out[i] = fmt.Sprintf("%.4f", v)
	}
	return strings.Join(out, " ")
}
