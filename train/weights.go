package train

import (
	"math"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
)

// The values of Config.ClassWeighting.
const (
	WeightNone     = "none"
	WeightBalanced = "balanced"
)

// Weightings lists the values of Config.ClassWeighting.
var Weightings = []string{WeightNone, WeightBalanced}

// classWeights are n/(C·n_y), so that the mean over the data of a weighted loss is the
// mean over classes of their means. Nil weighs all samples alike.
type classWeights map[int32]float64

func newClassWeights(c Config, d *data.Dataset) (classWeights, error) {
	if c.ClassWeighting != WeightBalanced {
		return nil, nil
	}
	counts := map[int32]float64{}
	for i := range d.Len() {
		label := d.Label(i)
		if label < 0 {
			return nil, setting.Errorf("class_weighting",
				"must be none unless every image has a label, got balanced and no label for image %d", i)
		}
		counts[label]++
	}
	return balanced(counts), nil
}

// balanced returns the weights of classes of so many images.
func balanced(counts map[int32]float64) classWeights {
	var n float64
	for _, of := range counts {
		n += of
	}
	w := classWeights{}
	for label, of := range counts {
		w[label] = n / (float64(len(counts)) * of)
	}
	return w
}

// weight returns the weight of a class: for one that the data set does not have, the
// largest of those that it has.
func (w classWeights) weight(label int32) float64 {
	if w == nil {
		return 1
	}
	if v, ok := w[label]; ok {
		return v
	}
	var most float64
	for _, v := range w {
		most = math.Max(most, v)
	}
	return most
}
