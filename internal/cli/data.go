package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

var dataGroup = command.Group{
	Use:   "data",
	Short: "Inspect images in many formats, and convert them to data sets",
	Example: `  anisoflight data inspect downloads/cifar-10-python.tar.gz
  anisoflight data convert downloads/cifar-10-python.tar.gz --name cifar10
  anisoflight data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 --transform center-crop`,
	Specs: []command.Spec{
		dataInspectSpec, dataConvertSpec,
	},
}

const formats = `PATH is a folder or zip of PNG, JPEG, WebP or BMP images (StyleGAN's and EDM's with
dataset.json; else folders are classes), a .npz with images and labels or arr_0,
a .npy, CIFAR-10's python or binary batches (a folder, a .tar.gz, one batch), Parquet or Arrow IPC
with a column image (a fixed shape tensor, or encoded images), or a stored data set.
docs/data.md has an example of each.

The work is done by the Python package: this is python -m anisoflight.data.`

var (
	labelsOption = command.Option{
		Name: "labels", Default: "auto",
		Usage: "`from` where: auto (the format's own), listed (in dataset.json), folder (the image's), none",
		OneOf: []string{"auto", "listed", "folder", "none"},
	}
	underOption = command.Option{
		Name: "under", Usage: "`folder` of a folder or zip whose images alone are read, such as train",
	}
	layoutOption = command.Option{
		Name: "layout", Usage: "`axes` of the arrays in .npy and .npz: HWC or CHW",
		Otherwise: "HWC where the last size is at most 4", OneOf: []string{"HWC", "CHW"},
	}
	quietOption = command.Option{Name: "quiet", Kind: command.Toggle, Usage: "no progress bars"}
)

var dataInspectSpec = command.Spec{
	Use:     "inspect",
	Args:    "PATH",
	Short:   "Decode every image and tell what there is: sizes, classes, moments, bad files",
	Long:    "Inspect decodes every image and tells what there is.\n\n" + formats,
	Example: "  anisoflight data inspect downloads/afhqv2/train",
	Options: []command.Option{layoutOption, labelsOption, underOption, quietOption},
	JSON:    true,
	Run: func(ctx context.Context, e command.Env) error {
		return runData(ctx, e, "inspect", nil, layoutOption, labelsOption, underOption, quietOption)
	},
}

var convertOptions = []command.Option{
	{Name: "name", Usage: "`name` of the data set in the data folder, or on the server"},
	{Name: "out", Usage: "`path` to write instead: FILE.zip for EDM's tools, else a folder"},
	{Name: "resolution", Usage: "`size` in pixels: 64 or WIDTHxHEIGHT", Otherwise: "as the images are"},
	{
		Name:  "transform",
		Usage: "`name` of a transform: resize center-crop center-crop-wide center-crop-dhariwal", Otherwise: "resize",
		OneOf: []string{"resize", "center-crop", "center-crop-wide", "center-crop-dhariwal"},
	},
	{Name: "channels", Kind: command.Whole, Usage: "1 makes all images grey, 3 colour", Otherwise: "as the images are"},
	{
		Name: "mean",
		Usage: "`numbers` of floats in units of their own, of which networks see (x − mean)/scale: one, a,b,… by channel, " +
			"or measured",
	},
	{
		Name:  "scale",
		Usage: "`numbers` likewise; measured is twice each channel's standard deviation, about the measured mean",
	},
	layoutOption,
	labelsOption,
	underOption,
	{Name: "skip_bad", Kind: command.Toggle, Usage: "leave out images that cannot be read, and name each"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace what is there"},
	quietOption,
}

var dataConvertSpec = command.Spec{
	Use:   "convert",
	Args:  "PATH",
	Short: "Convert images to a data set of a server, or to an EDM zip",
	Long: `Convert reads images one after the other, decodes them on all cores, and writes them as
they come: data sets may be larger than memory. With --name they become a data set of the
data folder, or of a server that runs; with --out a zip that EDM's tools read, or a stored
data set elsewhere. What is written appears whole or not at all.

--resolution with --transform does what EDM's dataset tool does, with its names; without
--transform images are resized to the resolution, whatever their proportions.

` + formats,
	Example: `  anisoflight data convert downloads/cifar-10-python.tar.gz --name cifar10
  anisoflight data convert downloads/afhqv2/train --name afhqv2 --resolution 64
  anisoflight data convert downloads/ffhq/images1024x1024 --name ffhq --resolution 64 --labels none
  anisoflight data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 --transform center-crop
  anisoflight data convert downloads/winds.npy --name winds --scale measured`,
	Options: slices.Concat(convertOptions, connect.FolderOptions, []command.Option{
		{
			Name: "max_upload_bytes", Kind: command.Whole, Default: strconv.FormatInt(1<<40, 10),
			Usage: "`bytes` that the data set may have",
		},
	}),
	JSON:   true,
	Stores: true,
	Run: func(ctx context.Context, e command.Env) error {
		if e.Text("name") == "" {
			return runData(ctx, e, "convert", nil, convertOptions...)
		}
		return connect.WithServer(ctx, e, func(c connect.Connection) error {
			return runData(ctx, e, "convert", &c, convertOptions...)
		})
	},
}

// runData runs a command of the Python module with the values of these options, and with a server where it needs one.
func runData(ctx context.Context, e command.Env, verb string, server *connect.Connection,
	options ...command.Option,
) error {
	args := []string{verb}
	if server != nil {
		args = append(args, "--server="+server.Location)
	}
	for _, o := range options {
		switch v := e.Get(o.Name).Value; {
		case v == nil || v == false:
		case v == true:
			args = append(args, "--"+o.Flag())
		default:
			args = append(args, fmt.Sprintf("--%s=%v", o.Flag(), v))
		}
	}
	if e.JSON {
		args = append(args, "--json")
	}
	cmd, err := command.Python(ctx, e, "anisoflight.data", append(args, "--", e.Args[0])...)
	if err != nil {
		return err
	}
	if server != nil {
		cmd.Env = connect.Environment(e)
	}
	return command.Wait(ctx, cmd)
}
