package runs

import (
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/train"
)

// creationNotes returns sentences on what a new run leaves out or cannot learn well.
func creationNotes(cfg train.Config, src train.Sources) []string {
	var out []string
	known := classesOf(cfg, src)
	if classes := src.Dataset.Classes(); src.Dataset.HasLabels() && classes > 0 {
		switch {
		case known == 0:
			out = append(out, fmt.Sprintf("label_dim is 0 and the dataset has %d classes: labels are ignored; "+
				"give label_dim %d for a network that knows them", classes, classes))
		case cfg.Model == "" && known > classes:
			out = append(out, fmt.Sprintf("label_dim is %d and the dataset has %d classes: labels from %d on are never "+
				"trained, and are drawn where samples name no labels; give label_dim %d", known, classes, classes, classes))
		}
	}
	frozen := cfg.TrainNetwork != nil && !*cfg.TrainNetwork
	isotropic := src.Model != nil && (src.Model.Schedule == nil || src.Model.Schedule.J() == 1)
	if frozen && isotropic && cfg.Family.Basis != "none" {
		out = append(out, fmt.Sprintf("the network of the model %q is frozen and was never trained on noise that "+
			"differs by subspace: a schedule of several subspaces leads it where it knows nothing; leave train_network out, or "+
			"take a family of basis none", cfg.Model))
	}
	return out
}

// noiseWindow is the number of steps over which the schedule's gradient is compared with its standard error.
const noiseWindow = 32

var normColumn, stderrColumn = slices.Index(train.RowColumns, "schedule_grad_norm"),
	slices.Index(train.RowColumns, "schedule_grad_stderr")

// noisy returns a sentence where the schedule's gradient over the last steps is no more than its standard error. The
// squares are compared: that of an estimate without any signal is that of its error in the mean.
func noisy(rows [][]float64) string {
	const most = 1.25
	if len(rows) < noiseWindow {
		return ""
	}
	var norm, stderr float64
	for _, row := range rows[len(rows)-noiseWindow:] {
		norm += row[normColumn] * row[normColumn]
		stderr += row[stderrColumn] * row[stderrColumn]
	}
	if !(stderr > 0 && norm <= most*stderr) { // NaN where a run learns no schedule
		return ""
	}
	return fmt.Sprintf("the schedule's gradient, %.3g, is no more than its standard error, %.3g, over the last %d steps: "+
		"what is learned is mostly noise; take a larger batch or more probes, or end it by early_stop noise",
		math.Sqrt(norm/noiseWindow), math.Sqrt(stderr/noiseWindow), noiseWindow)
}
