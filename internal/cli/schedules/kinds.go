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
number of evaluations of Heun's method on the data's own Gaussian. With --statistics the
schedule also stores the residual of every DCT frequency, which the solver local needs.`,
	Example: `  anisoflight schedule geodesic --name digits-geo --model digits --dataset digits
  anisoflight schedule geodesic --name digits-9 --model digits --dataset digits --nfe 9
  anisoflight schedule geodesic --name digits-local --model digits --dataset digits --statistics
  anisoflight sample --model digits --schedule digits-local --solver local --corrector --grid polynomial --nfe 5`,
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

var fitSpec = connect.MakeCommand(command.Spec{
	Use:   "fit",
	Short: "Fit the coefficients of each step to a model's own trajectories",
	Long: `Fit follows converged trajectories of a model. It fits the coefficients of the solver
local, for every frequency, to the points where each step should end, by least squares
with a ridge. One set of samples chooses the ridge, and another measures the result. With
--isotropic all frequencies have the same coefficients, and the fit starts from
DPM-Solver++. The schedule names its solver: sample along it with the same number of
evaluations.`,
	Example: `  anisoflight schedule geodesic --name digits-local --model digits --dataset digits --statistics
  anisoflight schedule fit --name digits-5 --model digits --schedule digits-local --nfe 5
  anisoflight sample --model digits --schedule digits-5 --nfe 5`,
}, "MakeSchedule", new(api.FitSchedule), "fitting")

var fewSpec = connect.MakeCommand(command.Spec{
	Use:   "few",
	Short: "Find the best sampler of few evaluations for a model",
	Long: `Few tries samplers on a model. It starts solvers from the data's own Gaussian at several
noise levels, and from noise, on EDM's noise levels, and from the Gaussian also on levels
chosen for the solver. It keeps the sampler whose samples are closest to the data set by
three Fréchet distances, less their bias, that need no trained network: of low frequencies,
and, with half of the weight, of differences between neighbouring pixels and of responses
of random filters. If this sampler is not better than the best
plain solver from noise by a standard error, on new samples, it keeps the plain one.
The reply has the ratio of their distances. At 16×16 with 0.33 M parameters, a search for
5 evaluations takes 55 s on two idle cores; the time grows with the cost of an
evaluation.

The schedule stores its start and its solver: sample along it with --nfe alone.`,
	Example: `  anisoflight schedule few --name few --model digits --dataset digits --nfe 5
  anisoflight sample --model digits --schedule few --nfe 5`,
}, "MakeSchedule", new(api.FewSchedule), "trying")
