package cli

import (
	"context"
	"fmt"
	"os"

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
		return runData(ctx, e, "inspect", labelsOption, quietOption)
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
	dataOption,
	{name: "server", usage: "`location` of a server to upload to, such as grpc://HOST:8815 (default: one of the data folder, for as long as it takes)"},
	{name: "token_file", usage: "`file` that holds a token for the server"},
	{name: "tls_root_certs", usage: "PEM `file` of the authorities that the server's certificate may be of"},
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
	options: convertOptions,
	json:    true,
	run: func(ctx context.Context, e env) error {
		return runData(ctx, e, "convert", convertOptions...)
	},
}

// runData runs a command of the Python module with the values of these options.
func runData(ctx context.Context, e env, command string, options ...option) error {
	args := []string{command}
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
	if program, err := os.Executable(); err == nil && os.Getenv("ANISOFLIGHT_BIN") == "" {
		cmd.Env = append(os.Environ(), "ANISOFLIGHT_BIN="+program) // which it serves the data folder with
	}
	return wait(ctx, cmd)
}
