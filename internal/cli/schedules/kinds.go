package schedules

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

var geodesicSpec = connect.MakeCommand(command.Spec{
	Use:   "geodesic",
	Short: "Make the schedule of least energy for a model, in one pass over a data set",
	Long: `Geodesic measures the model's residual F(σ) by noise level and lays the path along which
√F dg passes at constant speed: the path of least energy T·∫ ġ² F dt. With a basis every
subspace has its own F_j and its own path. With --nfe the path ends at the noise level
that is best for so many evaluations by Heun's method on the data's own Gaussian. With
--statistics the schedule carries the residual of every DCT frequency, by which the
solver local steps.`,
	Example: `  anisoflight schedule geodesic --name digits-geo --model digits --dataset digits
  anisoflight schedule geodesic --name digits-9 --model digits --dataset digits --nfe 9
  anisoflight schedule geodesic --name digits-local --model digits --dataset digits --statistics
  anisoflight sample --model digits --schedule digits-local --solver local --corrector --grid polynomial --nfe 5`,
}, "MakeSchedule", new(api.GeodesicSchedule), "measuring")

var nodesSpec = connect.MakeCommand(command.Spec{
	Use:   "nodes",
	Short: "Choose a solver's noise levels on a data set's own Gaussian, without a model",
	Long: `Nodes measures the mean and the spectrum of a data set and chooses the noise levels at
which a solver with so few evaluations comes closest to the normal law that has them,
in each subspace of a basis its own. It stores them as a schedule for that solver and
that number of evaluations, for any model of such images.

The reply has the squared 2-Wasserstein distances to that law, over its total
variance: of the nodes, and of the same solver on EDM's noise levels (ρ = 7).`,
	Example: `  anisoflight schedule nodes --name digits-5 --dataset digits --basis dct --solver dpmpp2m --nfe 5
  anisoflight sample --model digits --schedule digits-5 --nfe 5`,
}, "MakeSchedule", new(api.GaussianSchedule), "choosing")

var startSpec = connect.MakeCommand(command.Spec{
	Use:   "start",
	Short: "Start a schedule from the data's own normal law instead of noise",
	Long: `Start measures the mean μ and the covariance Σ of a data set in one pass and stores
them with a copy of a schedule, cut off at a lower noise level where --sigma-max says
so. Sampling along it starts from

  x = μ + (Σ + M)^½ ξ    instead of    x = M^½ ξ,

the law that such data have under noise of covariance M, as far as they are normal. It
costs no evaluation, and lets few evaluations begin at lower noise.`,
	Example: `  anisoflight schedule start --name digits-start --dataset digits --sigma-max 10
  anisoflight sample --model digits --schedule digits-start --solver dpmpp2m --grid polynomial --nfe 5`,
}, "MakeSchedule", new(api.StartSchedule), "measuring")

var fitSpec = connect.MakeCommand(command.Spec{
	Use:   "fit",
	Short: "Fit the coefficients of each step to a model's own trajectories",
	Long: `Fit follows converged trajectories of a model and moves the coefficients of the solver
local, in every frequency, to where each of its steps should end, by least squares. A
ridge holds them near their start; samples of their own choose how strongly, and others
judge. With --isotropic all frequencies have the same, and the fit starts from
DPM-Solver++: what the same fit gains without looking at frequencies. The schedule knows
its solver: sample along it with the same number of evaluations.`,
	Example: `  anisoflight schedule geodesic --name digits-local --model digits --dataset digits --statistics
  anisoflight schedule fit --name digits-5 --model digits --schedule digits-local --nfe 5
  anisoflight sample --model digits --schedule digits-5 --nfe 5`,
}, "MakeSchedule", new(api.FitSchedule), "fitting")

var fewSpec = connect.MakeCommand(command.Spec{
	Use:   "few",
	Short: "Find what samples a model best in few evaluations",
	Long: `Few tries samplers on a model: solvers, on EDM's noise levels and on those that suit the
solver on the data's own Gaussian, started from the data's own law at several noise
levels; and beside them the same solvers from noise alone. Of those it keeps what comes
closest to the data set, by three Fréchet distances that need no trained network: of the
low frequencies, of the differences between neighbouring pixels, and of the responses of
random filters. Where that is not surely better than the best plain solver from noise, on
samples that the choice has not seen, it keeps the plain one. The reply says by how much
it is better. At 16×16 with 0.33 M parameters 5 evaluations take 33 s on two quiet cores;
the time grows with the cost of an evaluation.

The schedule knows its start and its solver: sample along it with nfe alone.`,
	Example: `  anisoflight schedule few --name few --model digits --dataset digits --nfe 5
  anisoflight sample --model digits --schedule few --nfe 5`,
}, "MakeSchedule", new(api.FewSchedule), "trying")
