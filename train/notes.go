package train

import (
	"fmt"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Network returns the network of a run; nil if its configuration cannot be used, with which New fails.
func (src Sources) Network(cfg Config) kernels.Architecture {
	if src.Model != nil {
		return src.Model.Net
	}
	net, err := checkpoint.ParseNetwork(cfg.Network)
	if err != nil {
		return nil
	}
	return net
}

// Classes returns the number of classes of a run's network.
func (src Sources) Classes(cfg Config) int {
	if net := src.Network(cfg); net != nil {
		return net.Shape().Labels
	}
	return 0
}

// Notes returns sentences on what a run of a resolved configuration ignores or cannot learn well.
func (c Config) Notes(src Sources) []string {
	var out []string
	known := src.Classes(c)
	if classes := src.Dataset.Classes(); src.Dataset.HasLabels() && classes > 0 {
		switch {
		case known == 0 && c.Model != "":
			out = append(out, fmt.Sprintf("the model %q has no classes and the dataset has %d: labels are ignored; to use "+
				"them, pretrain a new network with label_dim %[2]d", c.Model, classes))
		case known == 0:
			out = append(out, fmt.Sprintf("label_dim is 0 and the dataset has %d classes: labels are ignored; "+
				"to use them, give label_dim %d", classes, classes))
		case c.Model == "":
			if unseen := src.Dataset.WithoutImages(known); len(unseen) > 0 {
				out = append(out, fmt.Sprintf("label_dim is %d and %d of these classes have no images, such as label %d: they "+
					"are never trained, and not drawn for samples without labels; number the classes from 0 without gaps", known,
					len(unseen), unseen[0]))
			}
		}
	}
	out = append(out, c.MovementWarning()...)
	net, learns := src.Network(c).(kernels.Trainable)
	if !learns || c.Stage != Anisotropic {
		return out
	}
	frozen := !*c.TrainNetwork
	isotropic := src.Model != nil && (src.Model.Schedule == nil || src.Model.Schedule.J() == 1)
	switch {
	case net.Ratios() == 0 && frozen:
		out = append(out, "the network is frozen and sees only the geometric mean of the g_j, not their ratios: paths that "+
			"differ make its samples worse; leave train_network out, or take the stage isotropic")
	case net.Ratios() == 0 && (c.RatioEmbedding == nil || !*c.RatioEmbedding):
		out = append(out, "the network sees only the geometric mean of the g_j, not their ratios: paths that differ make "+
			"its samples worse; leave ratio_embedding out")
	case frozen && isotropic:
		out = append(out, fmt.Sprintf("the network of the model %q is frozen and was never trained on noise that differs "+
			"by subspace, as it does along such schedules; leave train_network out, or take the stage isotropic", c.Model))
	}
	return out
}
