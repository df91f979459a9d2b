package recipe

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// The formats that images are generated in: those in which the real ones are downloaded.
const (
	formatCIFAR   = "cifar10-batches" // binary batches of 32×32
	formatPNG     = "png-folders"     // class folders of PNGs, as AFHQv2
	formatJPEG    = "jpeg-folders"    // class folders of JPEGs that are not square, as ImageNet
	formatEDM     = "edm-zip"         // EDM's zip with dataset.json
	cifarSide     = 32
	cifarBatches  = 5
	folderSide    = 20 // of generated files, shorter side
	folderStretch = 4  // by which the longer side is longer, of JPEGs
)

// Formats are those that images can be generated in.
var Formats = []string{formatCIFAR, formatPNG, formatJPEG, formatEDM}

// source is the file or folder that is converted.
func (r *Recipe) source(p Place) string {
	if r.Dataset.Generate == "" {
		return r.Dataset.Source
	}
	name := filepath.Join(p.Data, "sources", r.Name)
	if r.Dataset.Generate == formatEDM {
		name += ".zip"
	}
	return name
}

// Generate writes the images of a twin: for each class waves of its own, and noise.
// The same recipe gives the same images.
func (r *Recipe) Generate(p Place) error {
	target := r.source(p)
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	switch r.Dataset.Generate {
	case formatCIFAR:
		return r.generateCIFAR(target)
	case formatEDM:
		return r.generateZip(target)
	}
	return r.generateFolders(target)
}

// picture draws image i, of its class, w×h.
func (r *Recipe) picture(i, w, h int) *image.NRGBA {
	rng := rand.New(rand.NewPCG(uint64(i), 1))
	class := r.class(i)
	angle := math.Pi * float64(class) / float64(max(1, r.Dataset.Classes))
	fx, fy := 2*math.Cos(angle), 2*math.Sin(angle)
	phase := 2 * math.Pi * rng.Float64()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			wave := math.Sin(2*math.Pi*(fx*float64(x)/float64(w)+fy*float64(y)/float64(h)) + phase)
			shade := func(share float64) uint8 { return uint8(128 + 90*share*wave + 30*rng.Float64()) }
			m.SetNRGBA(x, y, color.NRGBA{R: shade(1), G: shade(0.5), B: shade(-0.5), A: 255})
		}
	}
	return m
}

func (r *Recipe) class(i int) int {
	if r.Dataset.Classes == 0 {
		return 0
	}
	return i % r.Dataset.Classes
}

// generateCIFAR writes data_batch_1.bin to data_batch_5.bin: per image one byte of label
// and the planes of red, green and blue.
func (r *Recipe) generateCIFAR(folder string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	n := r.Dataset.Images
	for b := range cifarBatches {
		var batch []byte
		for i := b * n / cifarBatches; i < (b+1)*n/cifarBatches; i++ {
			m := r.picture(i, cifarSide, cifarSide)
			batch = append(batch, byte(r.class(i)))
			for plane := range 3 {
				for at := plane; at < len(m.Pix); at += 4 {
					batch = append(batch, m.Pix[at])
				}
			}
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("data_batch_%d.bin", b+1)), batch, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generateFolders writes one folder for each class.
func (r *Recipe) generateFolders(folder string) error {
	asJPEG := r.Dataset.Generate == formatJPEG
	for i := range r.Dataset.Images {
		dir := filepath.Join(folder, fmt.Sprintf("class%04d", r.class(i)))
		if !asJPEG {
			split := "train"
			if i >= r.Dataset.Images/2 {
				split = "test"
			}
			dir = filepath.Join(folder, split, fmt.Sprintf("class%04d", r.class(i)))
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		name, w := fmt.Sprintf("%08d.png", i), folderSide
		write := func(f io.Writer, m image.Image) error { return png.Encode(f, m) }
		if asJPEG {
			name, w = fmt.Sprintf("%08d.JPEG", i), folderSide+folderStretch
			write = func(f io.Writer, m image.Image) error { return jpeg.Encode(f, m, nil) }
		}
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := write(f, r.picture(i, w, folderSide)); err != nil {
			_ = f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// generateZip writes PNGs of the final size and dataset.json, whose labels are null where
// there are no classes.
func (r *Recipe) generateZip(file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	z := zip.NewWriter(f)
	var labels []any
	for i := range r.Dataset.Images {
		name := fmt.Sprintf("%05d/img%08d.png", i/1000, i)
		w, err := z.Create(name)
		if err != nil {
			return err
		}
		if err := png.Encode(w, r.picture(i, r.Dataset.Resolution, r.Dataset.Resolution)); err != nil {
			return err
		}
		if r.Dataset.Classes > 0 {
			labels = append(labels, []any{name, r.class(i)})
		}
	}
	w, err := z.Create("dataset.json")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"labels": labels}); err != nil {
		return err
	}
	return z.Close()
}
