package source

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"

	"github.com/anisoflight/anisoflight/train/data"
)

// EDMZip is a sink that writes the zip that EDM's and StyleGAN's tools read: uncompressed
// PNGs 00000/img00000000.png, …, uncompressed in the zip, and dataset.json, {"labels":
// [[name, label], …]}, or null without labels. It ends with Close.
type EDMZip struct {
	form   data.Form
	z      *zip.Writer
	labels [][2]any
	n      int
}

// NewEDMZip begins a zip of images of bytes with 1 or 3 channels.
func NewEDMZip(w io.Writer, form data.Form) (*EDMZip, error) {
	switch {
	case form.Float:
		return nil, errors.New("a zip of PNGs has images of bytes, not of floats")
	case form.Channels != 1 && form.Channels != 3:
		return nil, fmt.Errorf("a PNG has 1 or 3 channels, not %d", form.Channels)
	}
	return &EDMZip{form: form, z: zip.NewWriter(w)}, nil
}

// Add implements Sink.
func (e *EDMZip) Add(p Picture, label int32) error {
	name := fmt.Sprintf("%05d/img%08d.png", e.n/1000, e.n)
	if e.form.Labels {
		if label < 0 {
			return failf("", name, "has no label, others have")
		}
		e.labels = append(e.labels, [2]any{name, label})
	}
	e.n++
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.NoCompression}
	if err := encoder.Encode(&b, p.image()); err != nil {
		return err
	}
	return e.store(name, b.Bytes())
}

func (e *EDMZip) store(name string, content []byte) error {
	f, err := e.z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return err
}

// Close writes the labels and the end of the zip.
func (e *EDMZip) Close() error {
	list, err := json.Marshal(map[string]any{"labels": e.labels})
	if err != nil {
		return err
	}
	if err := e.store(labelsFile, list); err != nil {
		return err
	}
	return e.z.Close()
}

// image gives the picture to Go's encoders.
func (p Picture) image() image.Image {
	bounds := image.Rect(0, 0, p.Width, p.Height)
	if p.Channels == 1 {
		return &image.Gray{Pix: p.Uint8, Stride: p.Width, Rect: bounds}
	}
	im := image.NewNRGBA(bounds)
	for i, k := 0, 0; i < len(p.Uint8); i, k = i+3, k+4 {
		copy(im.Pix[k:], p.Uint8[i:i+3])
		im.Pix[k+3] = 255
	}
	return im
}
