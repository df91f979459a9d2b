package source

import (
	"cmp"
	"context"
	"encoding/hex"
	"hash"
	"maps"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// Report is what Inspect tells of a source.
type Report struct {
	Format  string    `json:"format"`
	Images  int       `json:"images"` // that can be decoded
	Sizes   []Size    `json:"sizes"`  // the most frequent first
	DType   string    `json:"dtype"`  // uint8, float32, or mixed
	Labels  bool      `json:"labels"`
	Classes []Class   `json:"classes,omitempty"`
	Mean    []float64 `json:"mean"`           // by channel, of values in [−1, 1]
	Std     []float64 `json:"std"`            // likewise
	Hash    string    `json:"hash,omitempty"` // that the data set has when it is stored as it is; empty where images differ in size
	Bad     []Bad     `json:"bad,omitempty"`  // the first MaxBad
	NBad    int       `json:"n_bad"`
}

// Size counts the images of one size.
type Size struct {
	Height   int `json:"height"`
	Width    int `json:"width"`
	Channels int `json:"channels"`
	Images   int `json:"images"`
}

// Class counts the images of one class; label −1 is those without.
type Class struct {
	Label  int32  `json:"label"`
	Name   string `json:"name,omitempty"`
	Images int    `json:"images"`
}

// Bad is an image that cannot be read.
type Bad struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// MaxBad bounds the images that a report names.
const MaxBad = 100

// Inspect decodes every image of a source.
func Inspect(ctx context.Context, s *Source, progress func(done, total int)) (Report, error) {
	t := tally{source: s, sizes: map[Size]int{}, classes: map[int32]int{}, types: map[string]bool{}, moments: make([]moments, 4)}
	err := each(ctx, s, func(item Item) (Picture, error) { return item.Decode() }, func(i int, item Item, p Picture, err error) error {
		t.add(item, p, err)
		if progress != nil {
			progress(i+1, s.N)
		}
		return nil
	})
	return t.report(), err
}

// tally collects a report.
type tally struct {
	source  *Source
	sizes   map[Size]int // with Images 0
	classes map[int32]int
	types   map[string]bool
	moments []moments // by channel
	labels  []int32
	sum     hash.Hash
	bad     []Bad
	n, nBad int
}

// moments are the count, mean and sum of squared deviations of values (Welford).
type moments struct{ n, mean, m2 float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.m2 += d * (x - m.mean)
}

func (t *tally) add(item Item, p Picture, err error) {
	if err == nil {
		err = data.CheckRow(t.n, p.Float32)
	}
	if err != nil {
		t.nBad++
		if len(t.bad) < MaxBad {
			t.bad = append(t.bad, Bad{item.Name, reason(err)})
		}
		return
	}
	t.n++
	t.sizes[Size{p.Height, p.Width, p.Channels, 0}]++
	t.classes[item.Label]++
	dtype := "uint8"
	if p.Float32 != nil {
		dtype = "float32"
	}
	t.types[dtype] = true
	t.digest(item, p)
	for c := range p.Channels {
		for i := c; i < len(p.Uint8); i += p.Channels {
			t.moments[c].add(float64(pixels.FromUint8(p.Uint8[i])))
		}
		for i := c; i < len(p.Float32); i += p.Channels {
			t.moments[c].add(float64(p.Float32[i]))
		}
	}
}

// digest adds an image to the hash of the data set that it will be stored in.
func (t *tally) digest(item Item, p Picture) {
	if t.sum == nil {
		t.sum = data.NewHash(data.Form{
			Height: p.Height, Width: p.Width, Channels: p.Channels, Layout: pixels.HWC, Float: p.Float32 != nil, Labels: t.source.Labels,
		})
	}
	t.sum.Write(p.Uint8)
	_ = data.WriteValues(t.sum, p.Float32) // a hash never fails
	if t.source.Labels {
		t.labels = append(t.labels, item.Label)
	}
}

func (t *tally) report() Report {
	r := Report{Format: t.source.Format, Images: t.n, Labels: t.source.Labels, Bad: t.bad, NBad: t.nBad}
	for size, n := range t.sizes {
		size.Images = n
		r.Sizes = append(r.Sizes, size)
	}
	slices.SortFunc(r.Sizes, func(a, b Size) int {
		return cmp.Or(b.Images-a.Images, a.Height-b.Height, a.Width-b.Width, a.Channels-b.Channels)
	})
	switch types := slices.Collect(maps.Keys(t.types)); len(types) {
	case 0:
	case 1:
		r.DType = types[0]
	default:
		r.DType = "mixed"
	}
	for _, m := range t.moments {
		if m.n > 0 {
			r.Mean, r.Std = append(r.Mean, m.mean), append(r.Std, math.Sqrt(m.m2/m.n))
		}
	}
	if t.source.Labels {
		for _, label := range slices.Sorted(maps.Keys(t.classes)) {
			c := Class{Label: label, Images: t.classes[label]}
			if label >= 0 && int(label) < len(t.source.Classes) {
				c.Name = t.source.Classes[label]
			}
			r.Classes = append(r.Classes, c)
		}
	}
	if len(r.Sizes) == 1 && len(t.types) == 1 && t.nBad == 0 {
		_ = data.WriteValues(t.sum, t.labels) // a hash never fails
		r.Hash = hex.EncodeToString(t.sum.Sum(nil))
	}
	return r
}
