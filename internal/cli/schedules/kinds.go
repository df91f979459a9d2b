package schedules

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

var geodesicSpec = connect.MakeCommand(command.Spec{
	Use:   "geodesic",
	Short: "Make the schedule of least energy for a model, in one pass over a data set",
	Long: `Geodesic measures the model's residual F(σ) by noise level and makes the path of least
energy T·∫ ġ² F dt, on which √F ġ is constant. With a basis each subspace has its own
F_j and its own path. With --nfe the path ends at the noise level that is best for that
number of evaluations of Heun's method on the data's own Gaussian.`,
	Example: `  anisoflight schedule geodesic --name digits-geo --model digits --dataset digits
  anisoflight schedule geodesic --name digits-9 --model digits --dataset digits --nfe 9
  anisoflight sample --model digits --schedule digits-9 --nfe 9`,
}, "MakeSchedule", new(api.GeodesicSchedule), "measuring")

var startSpec = connect.MakeCommand(command.Spec{
	Use:   "start",
	Short: "Start a schedule from the data's own Gaussian instead of noise",
	Long: `Start measures the mean μ and the covariance Σ of a data set in one pass and stores
them with a copy of a schedule, which --sigma-max cuts off at a lower noise level.
Sampling along it starts from

  x = μ + (Σ + M)^½ ξ    instead of    x = M^½ ξ,

the law of Gaussian data under noise of covariance M. It costs no evaluation, so that
samplers of few evaluations can begin at lower noise.`,
	Example: `  anisoflight schedule start --name digits-start --dataset digits --sigma-max 10
  anisoflight sample --model digits --schedule digits-start --solver dpmpp2m --grid polynomial --nfe 5`,
}, "MakeSchedule", new(api.StartSchedule), "measuring")
