package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/train/passes"
)

// Warnings returns sentences on what makes the results of a run with a resolved configuration and these rows worse than
// necessary. Each says what to do.
func (c Config) Warnings(rows []Row) []string {
	var kimg float64
	if len(rows) > 0 {
		kimg = rows[len(rows)-1].Kimg
	}
	sentences := []string{c.averageWarning(kimg), gradientWarning(rows), c.rateWarning(rows)}
	return slices.DeleteFunc(sentences, func(s string) bool { return s == "" })
}

// startShare is the largest share of the initial network in the average without a warning.
const startShare = 0.25

// averageWarning returns a sentence if, after kimg, too much of the averaged network is the initial one; else "".
func (c Config) averageWarning(kimg float64) string {
	if !*c.TrainNetwork || c.EMARampup != nil && *c.EMARampup > 0 {
		return ""
	}
	share := math.Pow(0.5, kimg/c.EMAHalflife)
	if share <= startShare {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the averaged network is still what the run started from: ema_halflife_kimg is %g, "+
		"and the run has seen %g kimg; train longer, or give a shorter ema_halflife_kimg or ema_rampup 0.05", 100*share,
		c.EMAHalflife, kimg)
}

// rateWarning returns a sentence if the run was stopped before its end, so that a learning rate that should fall is
// above half of its maximum; else "".
func (c Config) rateWarning(rows []Row) string {
	name, ramp, rate := "lr", c.networkRamp(), func(r Row) float64 { return r.LR }
	if !*c.TrainNetwork {
		name, ramp, rate = "schedule_lr", c.scheduleRamp(), func(r Row) float64 { return r.ScheduleLR }
	}
	var highest float64
	for _, row := range rows {
		highest = max(highest, rate(row))
	}
	if len(rows) == 0 || ramp.At(c.Kimg, c.Kimg) > highest/2 {
		return ""
	}
	last := rows[len(rows)-1]
	if last.Kimg >= c.Kimg || rate(last) <= highest/2 {
		return ""
	}
	return fmt.Sprintf("the learning rate has not fallen: the run was planned for %g kimg, has seen %g, and %s is at "+
		"%.0f %% of its highest; train it to its end, or create it with kimg %[2]g", c.Kimg, last.Kimg, name,
		100*rate(last)/highest)
}

// fewestSteps is the smallest number of steps for a warning of gradientWarning.
const fewestSteps = 10

// gradientWarning returns a sentence if the schedule's gradients of consecutive steps have no direction in common: the
// mean cosine is below two standard errors. Else it returns "".
func gradientWarning(rows []Row) string {
	var cosines []float64
	for _, row := range rows {
		if !math.IsNaN(row.ScheduleGradCosine) {
			cosines = append(cosines, row.ScheduleGradCosine)
		}
	}
	if mean, stderr := passes.MeanStderr(cosines); len(cosines) < fewestSteps || mean > 2*stderr {
		return ""
	}
	return fmt.Sprintf("the gradients of %d steps have no direction in common: what the schedule has learned may be "+
		"noise; give a larger batch", len(cosines))
}

// leastMovement is the smallest sum of the schedule's learning rates without a warning. It bounds the relative change
// of an increment of ln g between two knots.
const leastMovement = 0.1

// MovementWarning returns a sentence if the learning rates of a resolved configuration can hardly move the schedule;
// else nil.
func (c Config) MovementWarning() []string {
	if c.Stage == Pretrain || !*c.TrainSchedule {
		return nil
	}
	sum, steps := c.scheduleRates(), math.Ceil(c.Kimg*1000/float64(c.Batch))
	if sum >= leastMovement {
		return nil
	}
	enough := c.ScheduleLR * leastMovement / sum * (1 + 1e-9) // also as a sum of rounded rates
	digits := math.Pow(10, 1-math.Floor(math.Log10(enough)))
	return []string{fmt.Sprintf("the schedule can hardly move: schedule_lr adds up to %.2g over %.0f steps, and a rise "+
		"of ln g between two knots changes by no more than about that part of itself; give a longer kimg, or schedule_lr "+
		"%.2g or more", sum, steps, math.Ceil(enough*digits)/digits)}
}

// scheduleRates returns the sum of the schedule's learning rates over all steps of a resolved configuration.
func (c Config) scheduleRates() (sum float64) {
	ramp, kimg := c.scheduleRamp(), float64(c.Batch)/1000
	steps := math.Ceil(c.Kimg / kimg)
	parts := math.Min(steps, 1000) // usually of one step
	for i := range int(parts) {
		from := math.Floor(float64(i)*steps/parts) * kimg
		sum += ramp.At(from, from+kimg) * steps / parts
	}
	return sum
}
