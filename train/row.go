package train

// Row is what one step reports. What a stage lacks is NaN: the energy and the
// schedule's columns in pretrain, the network's columns where it is frozen.
type Row struct {
	Step               int64   // from 1
	Kimg               float64 // thousands of images seen, this step's included
	Loss               float64 // batch mean
	Energy             float64 // E = T²·Loss, the path energy with time rescaled to [0, 1]
	GradNorm           float64 // of the network's gradient
	ScheduleGradNorm   float64 // |d_θH|
	ScheduleGradStderr float64 // standard error of d_θH over the batch, as a norm: √Σ_i Var
	LR                 float64 // of the network in this step
	ScheduleLR         float64
	Seconds            float64 // that the step took
}

// RowColumns names the columns of a Row in the order of Row.Values.
var RowColumns = []string{
	"step", "kimg", "loss", "energy", "grad_norm", "schedule_grad_norm", "schedule_grad_stderr", "lr", "schedule_lr", "seconds",
}

// Values returns the row as numbers, in the order of RowColumns.
func (r Row) Values() []float64 {
	return []float64{
		float64(r.Step), r.Kimg, r.Loss, r.Energy, r.GradNorm, r.ScheduleGradNorm, r.ScheduleGradStderr, r.LR, r.ScheduleLR, r.Seconds,
	}
}

func rowOf(v []float64) Row {
	return Row{
		Step: int64(v[0]), Kimg: v[1], Loss: v[2], Energy: v[3], GradNorm: v[4],
		ScheduleGradNorm: v[5], ScheduleGradStderr: v[6], LR: v[7], ScheduleLR: v[8], Seconds: v[9],
	}
}
