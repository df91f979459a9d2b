package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
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
docs/data.md has an example of each.

The work is done by the Python package: this is python -m anisoflight.data.`

var (
	labelsOption = option{name: "labels", def: "auto", usage: "`from` where: auto (the format's own), folder (the one an image lies in), none"}
	quietOption  = option{name: "quiet", kind: toggle, usage: "no progress bars"}
)

var dataInspectSpec = spec{
	use:     "inspect",
	args:    "PATH",
	short:   "Decode every image and tell what there is: sizes, classes, moments, bad files",
	long:    "Inspect decodes every image and tells what there is.\n\n" + formats,
	example: "  anisoflight data inspect downloads/afhqv2/train",
	options: []option{labelsOption, quietOption},
	json:    true,
	run: func(ctx context.Context, e env) error {
		return runData(ctx, e, "inspect", nil, labelsOption, quietOption)
	},
}

var convertOptions = []option{
	{name: "name", usage: "`name` of the data set in the data folder, or on the server"},
	{name: "out", usage: "`path` to write instead: FILE.zip for EDM's tools, else a folder"},
	{name: "resolution", usage: "`size` in pixels: 64 or WIDTHxHEIGHT (default: as the images are)"},
	{name: "transform", usage: "`name` of a transform: resize (default) center-crop center-crop-wide center-crop-dhariwal"},
	{name: "channels", kind: whole, usage: "1 makes all images grey, 3 colour (default: as the images are)"},
	labelsOption,
	{name: "skip_bad", kind: toggle, usage: "leave out images that cannot be read, and name each"},
	{name: "replace", kind: toggle, usage: "replace what is there"},
	quietOption,
}

var dataConvertSpec = spec{
	use:   "convert",
	args:  "PATH",
	short: "Convert images to a data set of a server, or to an EDM zip",
	long: `Convert reads images one after the other, decodes them on all cores, and writes them as
they come: data sets may be larger than memory. With --name they become a data set of the
data folder, or of a server that runs; with --out a zip that EDM's tools read, or a stored
data set elsewhere. What is written appears whole or not at all.

--resolution with --transform does what EDM's dataset tool does, with its names; without
--transform images are resized to the resolution, whatever their proportions.

` + formats,
	example: `  anisoflight data convert downloads/cifar-10-python.tar.gz --name cifar10
  anisoflight data convert downloads/afhqv2/train --name afhqv2 --resolution 64
  anisoflight data convert downloads/ffhq/images1024x1024 --name ffhq --resolution 64 --labels none
  anisoflight data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 --transform center-crop`,
	options: slices.Concat(convertOptions, folderOptions, []option{
		{name: "max_upload_bytes", kind: whole, def: strconv.FormatInt(1<<40, 10), usage: "`bytes` that the data set may have"},
	}),
	json:   true,
	stores: true,
	run: func(ctx context.Context, e env) error {
		if e.text("name") == "" {
			return runData(ctx, e, "convert", nil, convertOptions...)
		}
		return withServer(ctx, e, func(c connection) error {
			return runData(ctx, e, "convert", &c, convertOptions...)
		})
	},
}

// runData runs a command of the Python module with the values of these options, and with a server where it needs one.
func runData(ctx context.Context, e env, command string, server *connection, options ...option) error {
	args := []string{command}
	if server != nil {
		args = append(args, "--server="+server.location)
		if file := e.text("tls_ca"); file != "" {
			args = append(args, "--tls-root-certs="+file)
		}
	}
	for _, o := range options {
		switch v := e.get(o.name).value; {
		case v == nil || v == false:
		case v == true:
			args = append(args, "--"+o.flag())
		default:
			args = append(args, fmt.Sprintf("--%s=%v", o.flag(), v))
		}
	}
	if e.json {
		args = append(args, "--json")
	}
	cmd, err := pythonCommand(ctx, e, "anisoflight.data", append(args, "--", e.args[0])...)
	if err != nil {
		return err
	}
	if server != nil && e.text("token") != "" {
		cmd.Env = append(os.Environ(), "ANISOFLIGHT_TOKEN="+e.text("token"))
	}
	return wait(ctx, cmd)
}
