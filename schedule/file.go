package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/anisoflight/anisoflight/internal/base/jsonerror"
)

const (
	fileFormat  = "anisoflight-schedule"
	fileVersion = 1
)

// file is the schedule file:
//
//	{"format": "anisoflight-schedule", "version": 1,
//	 "family": {"per_class": false, "basis": "dct", "k": 16},      or "cuts": [2, 4]
//	 "labels": [0, 1, …],                              per class only
//	 "T": 6400, "g0": 1e-9, "theta": [row][subspace][K−1],   or
//	 "paths": [row][subspace]{"t": […], "g": […]},            a user's table
//	 "energy": [row][subspace]{"sigma": […], "f": […], "stderr": […]},   optional
//	 "sampler": {"solver": "dpmpp2m", "nfe": 5},                             optional
//	 "provenance": {"kind": "geodesic", …}}                                  optional
//
// A schedule with parameters stores them and no knots, so that the two cannot disagree. Numbers
// are written with as many digits as their float64 needs.
type file struct {
	Format  string         `json:"format"`
	Version int            `json:"version"`
	Family  Family         `json:"family"`
	Labels  []int          `json:"labels,omitempty"`
	T       float64        `json:"T,omitempty"`
	G0      float64        `json:"g0,omitempty"`
	Theta   [][]Theta      `json:"theta,omitempty"`
	Paths   [][]fileKnots  `json:"paths,omitempty"`
	Energy  [][]fileEnergy `json:"energy,omitempty"`

	Sampler    *Sampler    `json:"sampler,omitempty"`
	Provenance *Provenance `json:"provenance,omitempty"`
}

type fileKnots struct {
	T []float64 `json:"t"`
	G []float64 `json:"g"`
}

type fileEnergy struct {
	Sigma  []float64 `json:"sigma"`
	F      []float64 `json:"f"`
	Stderr []float64 `json:"stderr"`
}

// MarshalJSON returns the schedule file. Decode reads it back bit for bit.
func (s *Schedule) MarshalJSON() ([]byte, error) {
	f := file{
		Format: fileFormat, Version: fileVersion, Family: s.family, Labels: s.labels, Sampler: s.sampler,
		Provenance: s.provenance,
	}
	if s.theta != nil {
		f.T, f.G0, f.Theta = s.T(), s.g0, s.theta
	} else {
		f.Paths = make([][]fileKnots, s.Rows())
		for r, row := range s.paths {
			for _, p := range row {
				f.Paths[r] = append(f.Paths[r], fileKnots{T: p.tau, G: p.g})
			}
		}
	}
	for r, row := range s.energy {
		f.Energy = append(f.Energy, nil)
		for _, d := range row {
			var e fileEnergy
			for _, m := range d.samples {
				e.Sigma, e.F, e.Stderr = append(e.Sigma, m.Sigma), append(e.F, m.F), append(e.Stderr, m.Stderr)
			}
			f.Energy[r] = append(f.Energy[r], e)
		}
	}
	return json.Marshal(f)
}

// Decode reads a schedule file: one JSON object with known fields and nothing after it. It returns an *Error for any
// other content, and errors of r as they are.
func Decode(r io.Reader) (*Schedule, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var f file
	if err := dec.Decode(&f); err != nil {
		return nil, failf(-1, "not a schedule file: %s", jsonerror.Text(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, failf(-1, "not a schedule file: more than one JSON value")
	}
	if f.Format != fileFormat {
		return nil, failf(-1, "not a schedule file: format %q, want %q", f.Format, fileFormat)
	}
	if f.Version != fileVersion {
		return nil, failf(-1, "schedule file version must be %d, got %d", fileVersion, f.Version)
	}
	s, err := f.schedule()
	if err != nil {
		return nil, err
	}
	s.provenance, s.sampler = f.Provenance, f.Sampler
	if f.Energy == nil {
		return s, nil
	}
	energy := make([][]*Density, len(f.Energy))
	for r, row := range f.Energy {
		for _, e := range row {
			d, err := e.density()
			if err != nil {
				return nil, err
			}
			energy[r] = append(energy[r], d)
		}
	}
	return s.WithEnergy(energy)
}

func (f *file) schedule() (*Schedule, error) {
	if (f.Theta == nil) == (f.Paths == nil) {
		return nil, failf(-1, "a schedule file holds either theta or paths")
	}
	if f.Theta != nil {
		return FromTheta(f.Family, f.Labels, f.Theta, f.T, f.G0)
	}
	if f.T != 0 || f.G0 != 0 {
		return nil, failf(-1, "T and g0 belong to theta; paths carry their own ends")
	}
	paths := make([][]*Path, len(f.Paths))
	for r, row := range f.Paths {
		for _, k := range row {
			p, err := NewPath(k.T, k.G)
			if err != nil {
				return nil, err
			}
			paths[r] = append(paths[r], p)
		}
	}
	return New(f.Family, f.Labels, paths)
}

func (e *fileEnergy) density() (*Density, error) {
	if len(e.F) != len(e.Sigma) || len(e.Stderr) != len(e.Sigma) {
		return nil, failf(-1, "an energy density has %d noise levels, %d values and %d standard errors", len(e.Sigma),
			len(e.F), len(e.Stderr))
	}
	samples := make([]Sample, len(e.Sigma))
	for i := range samples {
		samples[i] = Sample{Sigma: e.Sigma[i], F: e.F[i], Stderr: e.Stderr[i]}
	}
	return NewDensity(samples)
}
