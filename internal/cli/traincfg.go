package cli

import (
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train"
)

// trainRequest are the fields of a run's configuration, those of CreateRun and of the files in configs/.
var trainRequest = connect.Fields(new(train.Config),
	command.Option{Name: "stage", OneOf: train.Stages},
	command.Option{Name: "class_weighting", OneOf: train.Weightings},
	command.Option{Name: "lr_ramp", OneOf: train.Ramps},
	command.Option{Name: "init", OneOf: train.Inits},
	command.Option{Name: "schedule_lr_ramp", OneOf: train.Ramps},
	command.Option{Name: "early_stop", OneOf: train.Stops},
	command.Option{Name: "probe", OneOf: kernels.Probes},
)
