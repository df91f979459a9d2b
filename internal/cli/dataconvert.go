package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/data/resample"
	"github.com/anisoflight/anisoflight/train/data/source"
)

var dataConvertSpec = spec{
	use:   "convert",
	args:  "PATH",
	short: "Convert images to a data set in the data folder, or to an EDM zip",
	long: `Convert reads images one after the other, decodes them on all cores, and writes them as
they come: data sets may be larger than memory. With --name they become a data set of the
data folder, which a server that is running sees at once; with --out a zip that EDM's tools
read, or a stored data set elsewhere. What is written appears whole or not at all.

--resolution with --transform does what EDM's dataset tool does, with its names; without
--transform images are resized to the resolution, whatever their proportions.

` + formats,
	example: `  anisoflight data convert downloads/cifar-10-python.tar.gz --name cifar10
  anisoflight data convert downloads/afhqv2/train --name afhqv2 --resolution 64
  anisoflight data convert downloads/ffhq/images1024x1024 --name ffhq --resolution 64 --labels none
  anisoflight data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 --transform center-crop`,
	options: []option{
		{name: "name", usage: "`name` of the data set in the data folder"},
		{name: "out", usage: "`path` to write instead: FILE.zip for EDM's tools, else a folder"},
		{name: "resolution", usage: "`size` in pixels: 64 or WIDTHxHEIGHT (default: as the images are)"},
		{name: "transform", usage: "`name` of a transform: " + strings.Join(resample.Names(), " ")},
		{name: "channels", kind: whole, usage: "1 makes all images grey, 3 colour (default: as the images are)"},
		labelsOption,
		{name: "skip_bad", kind: toggle, usage: "leave out images that cannot be read, with a warning each"},
		{name: "replace", kind: toggle, usage: "replace what is there"},
		dataOption,
	},
	json: true,
	run:  convertData,
}

func convertData(ctx context.Context, e env) error {
	set, err := conversion(e)
	if err != nil {
		return usagef(e.cmd, "%w", err)
	}
	out, err := destination(e)
	if err != nil {
		return err
	}
	s, err := source.Open(e.args[0], source.LabelRule(e.text("labels")))
	if err != nil {
		return err
	}
	defer s.Close()
	p := newProgress(e.err, e.log, "converting")
	set.Progress = func(done, total int) { p.set(int64(done), int64(total), "") }
	sum, err := convertTo(ctx, s, set, out, e.toggle("replace"))
	p.close()
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already; --replace replaces it", out)
	}
	if err != nil {
		return err
	}
	if e.json {
		return printJSON(e.out, map[string]any{
			"path": out, "images": sum.Images, "left_out": sum.LeftOut, "bad": sum.Bad,
			"height": sum.Form.Height, "width": sum.Form.Width, "channels": sum.Form.Channels, "labels": sum.Form.Labels,
		})
	}
	_, err = fmt.Fprintf(e.out, "%s: %d images of %d×%d pixels in %d channels, %s\n", out, sum.Images, sum.Form.Height, sum.Form.Width, sum.Form.Channels, besides(sum))
	return err
}

// besides says what a conversion's numbers leave open.
func besides(sum source.Summary) string {
	s := "without labels"
	if sum.Form.Labels {
		s = "with labels"
	}
	if sum.LeftOut > 0 {
		s += fmt.Sprintf("; %d too small and left out", sum.LeftOut)
	}
	if sum.Bad > 0 {
		s += fmt.Sprintf("; %d bad and left out", sum.Bad)
	}
	return s
}

// conversion reads the settings of a conversion.
func conversion(e env) (set source.Settings, err error) {
	set.Transform, set.Channels = e.text("transform"), int(e.whole("channels"))
	if size := e.text("resolution"); size != "" {
		width, height, both := strings.Cut(size, "x")
		if !both {
			height = width
		}
		var wrong error
		set.Width, err = strconv.Atoi(width)
		set.Height, wrong = strconv.Atoi(height)
		if err != nil || wrong != nil || set.Width < 1 || set.Height < 1 {
			return set, fmt.Errorf("--resolution is %q; it is a number of pixels, or WIDTHxHEIGHT", size)
		}
	}
	if e.toggle("skip_bad") {
		set.Bad = func(name string, err error) { e.log.Warn("left out", "image", name, "error", err) }
	}
	return set, set.Check()
}

// destination says where a conversion goes, and makes the folder around it.
func destination(e env) (string, error) {
	name, out := e.text("name"), e.text("out")
	switch {
	case (name == "") == (out == ""):
		return "", usagef(e.cmd, "give either --name, for the data folder, or --out")
	case name != "":
		if err := api.CheckName("name", name); err != nil {
			return "", err
		}
		out = filepath.Join(e.text("data"), "datasets", name)
	}
	if _, err := os.Lstat(out); err == nil && !e.toggle("replace") {
		return "", fmt.Errorf("%s is there already; --replace replaces it", out)
	}
	return out, os.MkdirAll(filepath.Dir(out), 0o755)
}

// convertTo writes a zip, or a stored data set.
func convertTo(ctx context.Context, s *source.Source, set source.Settings, out string, replace bool) (sum source.Summary, err error) {
	if strings.HasSuffix(out, ".zip") {
		err = writeFile(out, func(w io.Writer) error {
			var z *source.EDMZip
			sum, err = source.Convert(ctx, s, set, func(f data.Form) (_ source.Sink, err error) {
				z, err = source.NewEDMZip(w, f)
				return z, err
			})
			if err != nil {
				return err
			}
			return z.Close()
		})
		return sum, err
	}
	var w *data.Writer
	defer func() {
		if w != nil {
			w.Abort()
		}
	}()
	sum, err = source.Convert(ctx, s, set, func(f data.Form) (_ source.Sink, err error) {
		w, err = data.Create(out, f)
		return source.Stored{Writer: w}, err
	})
	if err != nil {
		return sum, err
	}
	return sum, w.Commit(replace)
}
