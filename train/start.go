package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/setting"
)

// familyBasis returns the basis of the configuration's family for images of h×w: the one
// that its name and numbers determine, else the given one.
func familyBasis(c Config, given *basis.Basis, h, w int) (*basis.Basis, error) {
	b, formula, err := basis.Formula(c.Family.Basis, h, w, c.Family.K, c.Family.Cuts)
	switch {
	case err != nil:
		return nil, setting.Errorf("family", "%v", err)
	case !formula && given == nil:
		return nil, setting.Errorf("family", "basis %q is not at hand", c.Family.Basis)
	case !formula:
		b = given
	}
	switch {
	case b.H() != h || b.W() != w:
		return nil, setting.Errorf("family", "basis %q is made for %d×%d pixels, the network's images have %d×%d", c.Family.Basis, b.H(), b.W(), h, w)
	case c.Stage == Anisotropic && b.J() < 2:
		return nil, setting.Errorf("family", "basis %q has one subspace; the stage anisotropic needs two", c.Family.Basis)
	case b.Kind() == basis.KindDense && c.Family.K != 0 && c.Family.K != b.K():
		return nil, setting.Errorf("family", "k is %d, basis %q has %d vectors", c.Family.K, c.Family.Basis, b.K())
	}
	return b, nil
}

// network returns the network that the run starts from, with its values. height and
// width are those of the data, which a dense basis has to fit as well.
func network(c Config, src Sources) (checkpoint.Network, [][]float32, error) {
	var cfg unet.Config
	switch {
	case src.Model != nil:
		net, ok := src.Model.Net.(*unet.Net)
		if !ok {
			return src.Model.Net, src.Model.Values, c.checkFrozen()
		}
		cfg = net.Config()
	case len(c.Network) > 0:
		var err error
		if cfg, err = unet.ParseConfig(c.Network); err != nil {
			return nil, nil, networkError(err)
		}
	default:
		return nil, nil, setting.Errorf("network", "it is missing; give the config.json of a network, or a model to start from")
	}
	if c.RatioEmbedding && cfg.RatioEmbedding == 0 {
		b, err := familyBasis(c, src.Basis, cfg.ImgResolution, cfg.ImgResolution)
		if err != nil {
			return nil, nil, err
		}
		cfg.RatioEmbedding = b.J() - 1
	}
	net, err := unet.New(cfg)
	if err != nil {
		return nil, nil, networkError(err)
	}
	if src.Model == nil {
		return net, net.Init(c.Seed), nil
	}
	values, err := net.Load(src.Model.Net.State(src.Model.Values))
	if err != nil {
		return nil, nil, setting.Errorf("model", "%v", err)
	}
	return net, values, nil
}

// checkFrozen tells whether the run suits a network whose flow is exact: there is
// nothing to train, and it sees all of g.
func (c Config) checkFrozen() error {
	switch {
	case c.Stage == Pretrain:
		return setting.Errorf("stage", "a mixture is exact; there is nothing to pretrain")
	case *c.TrainNetwork:
		return setting.Errorf("train_network", "a mixture is exact and stays as it is; set it to false")
	case c.RatioEmbedding:
		return setting.Errorf("ratio_embedding", "a mixture sees all of g as it is")
	}
	return nil
}

func networkError(err error) error {
	var e *unet.ConfigError
	if errors.As(err, &e) && e.Field != "" {
		return setting.Errorf("network."+e.Field, "%s", e.Reason)
	}
	return setting.Errorf("network", "%v", err)
}

// startSchedule returns the schedule that the stage starts from, spread over the rows
// and subspaces of its family, with parameters; and the configuration with T, G0 and
// Knots as they are there.
//
// In pretrain the schedule is only kept for the model that is saved: it is the named
// one, the model's own, or none.
func startSchedule(c Config, src Sources, b *basis.Basis, classes int) (*schedule.Schedule, Config, error) {
	start, named := src.Schedule, src.Schedule != nil
	if start == nil && c.Init == "" && src.Model != nil {
		start = src.Model.Schedule
	}
	if c.Stage == Pretrain {
		return start, c, nil
	}
	if start != nil {
		if field, have := c.disagrees(start); field != "" {
			if named {
				return nil, c, setting.Errorf(field, "the schedule %q has %g; leave the field out, or start from another schedule", c.Schedule, have)
			}
			start = nil // the model's own serves only where nothing else is asked for
		}
	}
	if start == nil {
		if c.Init == initGeodesic && src.Model != nil && src.Model.Schedule != nil { // on the model's own time
			setting.Default(&c.T, src.Model.Schedule.T())
		}
		setting.Default(&c.T, schedule.DefaultT)
		setting.Default(&c.G0, schedule.DefaultG0)
		setting.Default(&c.Knots, schedule.DefaultKnots)
		setting.Default(&c.Init, "edm")
		if c.G0 >= c.T {
			return nil, c, setting.Errorf("g0", "%g; it lies below T = %g", c.G0, c.T)
		}
		form := c.Init
		if form == initGeodesic { // measured before the first step; until then any will do
			form = "log-linear"
		}
		theta, err := schedule.InitialTheta(form, c.Knots, c.T, c.G0)
		if err != nil {
			return nil, c, setting.Errorf("init", "%v", err)
		}
		if start, err = schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, c.T, c.G0); err != nil {
			return nil, c, setting.Errorf("init", "%v", err)
		}
	}
	if c.Knots == 0 {
		c.Knots = schedule.DefaultKnots
		if theta := start.Theta(); theta != nil {
			c.Knots = len(theta[0][0]) + 1
		}
	}
	start, err := start.WithTheta(c.Knots)
	if err != nil {
		return nil, c, setting.Errorf("schedule", "%v", err)
	}
	var labels []int
	if c.Family.PerClass {
		if classes == 0 {
			return nil, c, setting.Errorf("family", "there are no classes; only a shared schedule can be learned")
		}
		for label := range classes {
			labels = append(labels, label)
		}
	}
	if start, err = start.Expand(c.Family, labels, b.J()); err != nil {
		return nil, c, setting.Errorf("schedule", "%v", err)
	}
	c.T, c.G0 = start.T(), start.At(0, 0).G0()
	return start, c, nil
}

// disagrees returns the field of T and G0 that is given and is not s's, with s's value.
func (c Config) disagrees(s *schedule.Schedule) (field string, have float64) {
	if have = s.T(); c.T != 0 && !near(c.T, have) {
		return "T", have
	}
	if have = s.At(0, 0).G0(); c.G0 != 0 && !near(c.G0, have) {
		return "g0", have
	}
	return "", 0
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// checkData tells whether the data set serves the network and the family.
func checkData(c Config, src Sources, b *basis.Basis, s checkpoint.Shape) error {
	d := src.Dataset
	switch {
	case d == nil:
		return setting.Errorf("dataset", "it is missing")
	case d.Height() != s.Height || d.Width() != s.Width || d.Channels() != s.Channels:
		return setting.Errorf("dataset", "its images have %d×%d pixels in %d channels, the network's %d×%d in %d", d.Height(), d.Width(), d.Channels(), s.Height, s.Width, s.Channels)
	case s.Labels > 0 && d.Classes() > s.Labels:
		return setting.Errorf("dataset", "it has labels up to %d, the network knows classes 0 to %d", d.Classes()-1, s.Labels-1)
	}
	for i := range d.Len() {
		label := d.Label(i)
		switch {
		case label < 0 && c.Family.PerClass && c.Stage != Pretrain:
			return setting.Errorf("dataset", "image %d has no label; a schedule per class needs one for each", i)
		case label < 0 && b.PerClass():
			return setting.Errorf("dataset", "image %d has no label; a basis per class needs one for each", i)
		case b.PerClass() && !b.Knows(int(label)):
			return setting.Errorf("family", "basis %q has no vectors for class %d, that of image %d", c.Family.Basis, label, i)
		}
	}
	return nil
}

// errNoModel says what the model of a run without EDM's network is asked for.
var errNoModel = fmt.Errorf("train: only a run of EDM's networks can be saved")
