// Package schedule holds noise schedules: how fast the noise variance of each subspace grows with time.
//
// A Path is one increasing function g(t), a variance, on [0, T]: ln g is linear between knots. A Theta is the
// unconstrained form of a path that an optimiser moves. A Schedule is a table of paths, one row per class label (or one
// shared row) and one column per subspace of the image space. A Density is a measured energy density F(g), from which
// Geodesic builds the schedule of least energy without any descent.
//
// Everything is float64 and lives on the host. The device never sees a schedule: it receives g and ġ per sample and
// returns two numbers per sample and subspace, A = ∂L/∂g and B = ∂L/∂ġ, which Path.Chain and Theta.Pull carry back to
// the knots and to θ.
//
// Invariants. Paths, densities and schedules are immutable: methods return copies. Along every path g is positive and
// strictly increasing. All paths of a schedule end at the same time T.
//
// Begin with path.go, then theta.go, then schedule.go.
package schedule

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// endTolerance is how far, relatively, the ends of a schedule's paths may differ.
const endTolerance = 1e-9

// Schedule is a table of paths [row][subspace]: one row per class label, or one row shared by all. It is immutable and
// safe for concurrent use.
type Schedule struct {
	family Family
	labels []int       // nil if one row is shared
	rowOf  map[int]int // label → row
	paths  [][]*Path
	geo    []*Path // geometric mean of each row's paths
	theta  [][]Theta
	g0     float64 // meaningful with theta
	energy [][]*Density

	provenance *Provenance
	sampler    *Sampler
}

// New returns the schedule of paths[row][subspace]. labels has the class of each row; nil means one row shared by every
// class and by samples without a class. All paths must end at one T, within 1e-9 relative; each may have its own g(T).
// Errors are *Error.
func New(fam Family, labels []int, paths [][]*Path) (*Schedule, error) {
	if len(paths) == 0 || len(paths[0]) == 0 {
		return nil, failf(-1, "a schedule must have at least one path, got none")
	}
	if err := fam.check(len(paths[0])); err != nil {
		return nil, err
	}
	switch {
	case fam.PerClass != (labels != nil):
		return nil, failf(-1, "a per-class schedule must have one label per row, and a shared one none")
	case labels == nil && len(paths) != 1:
		return nil, failf(-1, "a shared schedule must have one row, got %d", len(paths))
	case labels != nil && len(labels) != len(paths):
		return nil, failf(-1, "a per-class schedule must have one label per row, got %d labels for %d rows", len(labels),
			len(paths))
	}
	fam.Cuts = slices.Clone(fam.Cuts)
	s := &Schedule{family: fam, labels: slices.Clone(labels), rowOf: map[int]int{}}
	for r, l := range labels {
		if l < 0 {
			return nil, failf(-1, "the labels of a per-class schedule must be at least 0, got %d", l)
		}
		if _, twice := s.rowOf[l]; twice {
			return nil, failf(-1, "labels must be distinct, got %d twice", l)
		}
		s.rowOf[l] = r
	}
	first := paths[0][0]
	for r, row := range paths {
		if len(row) != len(paths[0]) {
			return nil, failf(-1, "every row must have the %d subspaces of the first, got %d in %s", len(paths[0]), len(row),
				s.rowName(r))
		}
		kept := make([]*Path, len(row))
		for j, p := range row {
			if !sameEnd(p.T(), first.T()) {
				return nil, failf(-1, "all paths must end at one T, got %v after %v in %s, subspace %d", p.T(), first.T(),
					s.rowName(r), j)
			}
			var err error
			if kept[j], err = p.endingAt(first.T()); err != nil {
				return nil, err
			}
		}
		s.paths = append(s.paths, kept)
		s.geo = append(s.geo, geometricMean(kept))
	}
	return s, nil
}

// Isotropic returns the schedule of one path, shared by all classes, for the whole image space.
func Isotropic(p *Path) *Schedule {
	s, err := New(Family{Basis: "none"}, nil, [][]*Path{{p}})
	if err != nil {
		panic(err) // one path breaks no rule
	}
	return s
}

// FromTheta returns the schedule with parameters theta[row][subspace], all of one length, between the variances g0 and
// T. Errors are *Error.
func FromTheta(fam Family, labels []int, theta [][]Theta, T, g0 float64) (*Schedule, error) {
	if len(theta) == 0 || len(theta[0]) == 0 {
		return nil, failf(-1, "a schedule must have at least one path, got none")
	}
	if err := checkRange(len(theta[0][0])+1, T, g0); err != nil {
		return nil, err
	}
	paths := make([][]*Path, len(theta))
	kept := make([][]Theta, len(theta))
	for r, row := range theta {
		for j, th := range row {
			if len(th) != len(theta[0][0]) {
				return nil, failf(-1, "every path must have the %d parameters of the first, got %d in row %d, subspace %d",
					len(theta[0][0]), len(th), r, j)
			}
			if !th.Finite() {
				return nil, failf(-1, "parameters must be finite, got another in row %d, subspace %d", r, j)
			}
			paths[r] = append(paths[r], th.Path(T, g0))
			kept[r] = append(kept[r], slices.Clone(th))
		}
	}
	s, err := New(fam, labels, paths)
	if err != nil {
		return nil, err
	}
	s.theta, s.g0 = kept, g0
	return s, nil
}

func sameEnd(a, b float64) bool {
	return math.Abs(a-b) <= endTolerance*math.Max(math.Abs(a), math.Abs(b))
}

// endingAt returns p with its last knot moved to T.
func (p *Path) endingAt(T float64) (*Path, error) {
	if p.T() == T {
		return p, nil
	}
	tau := slices.Clone(p.tau)
	tau[len(tau)-1] = T
	return NewPath(tau, p.g)
}

// geometricMean returns the path of (Π_j g_j)^{1/J}: its logarithm is the mean of the logarithms, linear between the
// knots of all paths.
func geometricMean(paths []*Path) *Path {
	if len(paths) == 1 {
		return paths[0]
	}
	var tau []float64
	for _, p := range paths {
		tau = append(tau, p.tau...)
	}
	sort.Float64s(tau)
	tau = slices.Compact(tau)
	geo := &Path{tau: tau, g: make([]float64, len(tau)), logg: make([]float64, len(tau))}
	for k, t := range tau {
		same := true
		for _, p := range paths {
			geo.logg[k] += p.log(t) / float64(len(paths))
			same = same && p.log(t) == paths[0].log(t)
		}
		geo.g[k] = math.Exp(geo.logg[k])
		if same { // the ends, as a rule: keep them exact
			geo.g[k], _ = paths[0].Eval(t)
			geo.logg[k] = paths[0].log(t)
		}
	}
	return geo
}

func (s *Schedule) rowName(r int) string {
	if s.labels == nil {
		return "the shared row"
	}
	return "label " + strconv.Itoa(s.labels[r])
}

// J returns the number of subspaces.
func (s *Schedule) J() int { return len(s.paths[0]) }

// T returns the time at which all paths end.
func (s *Schedule) T() float64 { return s.paths[0][0].T() }

// Rows returns the number of rows: classes, or 1.
func (s *Schedule) Rows() int { return len(s.paths) }

// Family returns how the schedule is shared.
func (s *Schedule) Family() Family { return s.family }

// Labels returns a copy of the rows' labels, or nil if one row is shared.
func (s *Schedule) Labels() []int { return slices.Clone(s.labels) }

// Row returns the row of a label: 0 for every label of a shared schedule. It returns a *LabelError if a per-class
// schedule does not have the label.
func (s *Schedule) Row(label int) (int, error) {
	if s.labels == nil {
		return 0, nil
	}
	r, ok := s.rowOf[label]
	if !ok {
		return 0, &LabelError{Label: label}
	}
	return r, nil
}

// At returns the path of subspace j in a row.
func (s *Schedule) At(row, j int) *Path { return s.paths[row][j] }

// Theta returns a copy of the parameters [row][subspace], or nil if the paths were given by their knots.
func (s *Schedule) Theta() [][]Theta {
	if s.theta == nil {
		return nil
	}
	out := make([][]Theta, len(s.theta))
	for r, row := range s.theta {
		for _, th := range row {
			out[r] = append(out[r], slices.Clone(th))
		}
	}
	return out
}

// Eval writes g_j(t) and ġ_j(t) of a row to g and gdot, both [J].
func (s *Schedule) Eval(row int, t float64, g, gdot []float64) {
	for j, p := range s.paths[row] {
		g[j], gdot[j] = p.Eval(t)
	}
}

// WithBasis returns the schedule on another basis of as many subspaces, whose first has k dimensions per channel; 0
// means the default of the basis.
func (s *Schedule) WithBasis(name string, k int) (*Schedule, error) {
	c := *s
	c.family.Basis, c.family.K = name, k
	return &c, c.family.check(s.J())
}

// Sigma returns the geometric-mean noise level of a row,
//
//	σ(t) = Π_j g_j(t)^{1/(2J)}.
func (s *Schedule) Sigma(row int, t float64) float64 {
	g, _ := s.geo[row].Eval(t)
	return math.Sqrt(g)
}

// TimeOf returns the time at which a row's geometric-mean noise level is sigma, in closed form per interval of the
// merged knots, clamped to [0, T].
func (s *Schedule) TimeOf(row int, sigma float64) float64 {
	return s.geo[row].Inverse(sigma * sigma)
}

// Error reports why a schedule, a path or a table was refused.
type Error struct {
	Row int    // row of the offending table, counted from 0; −1 if no row is to blame
	Msg string // what is wrong and what to do
}

// Error implements the error interface.
func (e *Error) Error() string {
	if e.Row < 0 {
		return "schedule: " + e.Msg
	}
	return fmt.Sprintf("schedule: row %d: %s", e.Row, e.Msg)
}

// LabelError is returned if a per-class schedule has no row for a label.
type LabelError struct {
	Label int
}

// Error implements the error interface.
func (e *LabelError) Error() string {
	if e.Label < 0 {
		return "schedule: this schedule has one row per class and needs a label; none was given"
	}
	return fmt.Sprintf("schedule: label %d has no row in this schedule", e.Label)
}

func failf(row int, format string, args ...any) error {
	return &Error{Row: row, Msg: fmt.Sprintf(format, args...)}
}

// Family says whether a schedule is shared by classes, and which basis splits the image space.
type Family struct {
	// PerClass is true if each class has paths of its own.
	PerClass bool `json:"per_class"`
	// Basis names the subspaces: one of [basis.Names], such as "none" (J = 1), or a stored basis.
	Basis string `json:"basis"`
	// K is the number of dimensions of the first subspace per channel; 0 means the basis's default.
	K int `json:"k,omitempty"`
	// Cuts are the nested bands of a basis that takes them, such as dct, J = len(Cuts)+1: P_1 holds the frequencies max(u,
	// v) < Cuts[0], P_2 those below Cuts[1] but not in P_1, and so on. They exclude K.
	Cuts []int `json:"cuts,omitempty"`
}

// check returns an *Error for the first rule that a family with j subspaces breaks.
func (f Family) check(j int) error {
	d, _ := basis.Lookup(f.Basis)
	switch {
	case f.Basis == "":
		return failf(-1, "family.basis is missing; use %s or the name of a stored basis",
			strings.Join(basis.Names(nil), ", "))
	case d.One && j != 1:
		return failf(-1, "a schedule on basis %s must have one subspace, got %d", f.Basis, j)
	case !d.One && j < 2:
		return failf(-1, "a schedule on basis %s must have at least two subspaces, got %d", f.Basis, j)
	case f.K < 0:
		return failf(-1, "k must be at least 1, got %d", f.K)
	case d.One && f.K != 0:
		return failf(-1, "k must be left out for basis %s", f.Basis)
	case len(f.Cuts) > 0 && !d.Cuts:
		return failf(-1, "cuts must be left out for basis %s, got %v", f.Basis, f.Cuts)
	case len(f.Cuts) > 0:
		return f.checkCuts(j)
	case d.CheckK != nil:
		if wrong := d.CheckK(f.K); wrong != "" {
			return failf(-1, "%s", wrong)
		}
	}
	return nil
}

func (f Family) checkCuts(j int) error {
	switch {
	case f.K != 0:
		return failf(-1, "k and cuts must not both be given, got %d and %v", f.K, f.Cuts)
	case j != len(f.Cuts)+1:
		return failf(-1, "cuts must make the %d subspaces of the schedule, got %v, which make %d", j, f.Cuts, len(f.Cuts)+1)
	}
	for i, c := range f.Cuts {
		if c < 1 || i > 0 && c <= f.Cuts[i-1] {
			return failf(-1, "cuts must increase from 1 on, got %v", f.Cuts)
		}
	}
	return nil
}
