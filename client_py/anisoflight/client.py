"""The client: every operation of the service as a method."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from . import comparison, uploads
from .calls import DEFAULT_LOCATION, Calls
from .exchanges import Denoised, Gradient, denoise_rows, gradient_rows, latent_rows
from .files import Vectors, read_schedule
from .run import Run
from .samples import Dataset, Samples
from .schedule import Schedule
from .tensors import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from .comparison import Choice
    from .metrics import Features


def connect(
    location: str = DEFAULT_LOCATION,
    token: str | None = None,
    tls_root_certs: bytes | None = None,
    timeout: float | None = None,
) -> Client:
    """A client of the server at location: ``grpc://HOST:PORT``, ``grpc+tls://HOST:PORT`` or ``grpc+unix:///PATH``.

    token is needed where the server has tokens configured, tls_root_certs (PEM) where its certificate is not
    publicly known. timeout is what a call may take, in seconds; without one, as long as it takes. The connection
    opens with the first call.
    """
    return Client(location, token=token, tls_root_certs=tls_root_certs, timeout=timeout)


class Client(Calls):
    """A server's operations. Use it as a context manager, or close it.

    Calls block until their answer is complete, show a progress bar when they take longer than half a second, and an
    interrupt (Ctrl-C) ends them here and on the server. Errors are `AnisoflightError`s.

    >>> client.models().index.tolist()
    ['digits']
    """

    # What there is

    def info(self) -> dict[str, Any]:
        """Version, device, load and memory of the server."""
        return self.call("ServerInfo")

    def operations(self) -> dict[str, str]:
        """Every action of the server with a sentence on what it does."""
        return self._connection.operations()

    def models(self) -> pd.DataFrame:
        """The models, one row each, indexed by name."""
        return _frame(self.call("ListModels")["models"])

    def schedules(self) -> pd.DataFrame:
        """The schedules, those that belong to models included."""
        return _frame(self.call("ListSchedules")["schedules"])

    def datasets(self) -> pd.DataFrame:
        """The stored datasets."""
        return _frame(self.call("ListDatasets")["datasets"])

    def runs(self) -> pd.DataFrame:
        """The training runs."""
        return _frame(self.call("ListRuns")["runs"])

    def bases(self) -> pd.DataFrame:
        """The stored bases: name, height, width, k, per_class."""
        return _frame(self.call("ListBases")["bases"])

    # Models

    def describe_model(self, model: str) -> dict[str, Any]:
        """One model with its whole configuration."""
        return self.call("DescribeModel", model=model)

    def load_model(self, name: str, path: str | None = None) -> dict[str, Any]:
        """Serve the model folder at path, relative to the server's models folder (default: the name)."""
        return self.call("LoadModel", name=name, path=path or name)

    def unload_model(self, model: str) -> None:
        """Stop serving a model; its folder stays."""
        self.call("UnloadModel", model=model)

    def delete_model(self, model: str) -> None:
        self.call("DeleteModel", model=model)

    def make_mixture(
        self,
        name: str,
        dataset: str | None = None,
        *,
        covariance: str | None = None,
        floor: float | None = None,
        means: npt.ArrayLike | None = None,
        covariances: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        shape: tuple[int, int, int] | None = None,
        replace: bool = False,
        progress: bool = True,
    ) -> dict[str, Any]:
        """Make a Gaussian mixture, whose score is exact, and serve it as a model.

        Of a dataset's classes, one component each, with as much of their covariance as `covariance` says: "dct" (the
        channels of each frequency), "full", or the blocks of a basis by name. Or of your own laws: means [n, d] and
        covariances [n, d, d] of images of `shape` [H, W, C] (default [1, d, 1]), with weights [n] and class labels [n].

        >>> cov = [[[0.04, 0.01], [0.01, 0.02]], [[0.01, 0], [0, 0.03]]]
        >>> client.make_mixture("plane", means=[[0.5, 0], [-0.5, 0.25]], covariances=cov, replace=True)["model_type"]
        'Mixture'
        """
        lists = {"means": means, "covariances": covariances, "weights": weights, "labels": labels, "shape": shape}
        given = {field: np.asarray(values).tolist() for field, values in lists.items() if values is not None}
        request = _given(name=name, dataset=dataset, covariance=covariance, floor=floor, replace=replace)
        return self.call("MakeModel", show="mixture" if progress else None, **request, **given)

    # Sampling

    def sample(
        self,
        model: str,
        *,
        n: int | None = None,
        labels: npt.ArrayLike | None = None,
        latents: npt.ArrayLike | None = None,
        seed: int | None = None,
        steps: int | None = None,
        nfe: int | None = None,
        solver: str | None = None,
        order: int | None = None,
        variant: str | None = None,
        second_point: str | None = None,
        grid: str | Mapping[str, Any] | None = None,
        schedule: str | Mapping[str, Any] | None = None,
        every: int | None = None,
        dtype: str | None = None,
        layout: str | None = None,
        batch_bytes: int | None = None,
        denoise_to_zero: bool | None = None,
        afs: bool | None = None,
        lower_order_final: bool | None = None,
        warmup: str | None = None,
        S_churn: float | None = None,
        S_min: float | None = None,
        S_max: float | None = None,
        S_noise: float | None = None,
        progress: bool = True,
    ) -> Samples:
        """Draw images: solve dx = −Σ_j P_j flow(x, t) d√g_j from pure noise to t = 0.

        Say how many by `n` (labels of a conditional model are then drawn), by `labels` (one image each, −1 = none)
        or by your own unit-normal `latents` [n, H, W, C]; and how finely by `steps` or by `nfe`, the evaluations of
        the network per image. Sample i depends on the model, the request and seed + i alone. What is left out takes
        the server's default: solver "heun" with second_point "midpoint", grid "schedule" (uniform in t), the
        model's own schedule, dtype "uint8", layout "HWC".

        >>> client.sample("digits", labels=[3, 1, 4], nfe=9, dtype="float32").images.dtype
        dtype('float32')
        >>> client.sample("digits", n=2, steps=5, grid={"edm": {"sigma_max": 20}}, second_point="endpoint").nfe.tolist()
        [9, 9]
        """
        request = _given(
            model=model,
            n=n,
            seed=seed,
            steps=steps,
            nfe=nfe,
            solver=solver,
            order=order,
            variant=variant,
            second_point=second_point,
            grid=grid,
            schedule=schedule,
            every=every,
            dtype=dtype,
            layout=layout,
            batch_bytes=batch_bytes,
            denoise_to_zero=denoise_to_zero,
            afs=afs,
            lower_order_final=lower_order_final,
            warmup=warmup,
            S_churn=S_churn,
            S_min=S_min,
            S_max=S_max,
            S_noise=S_noise,
        )
        if latents is not None:
            return Samples(self.exchange("Sample", request, latent_rows(latents, labels), "sample", progress))
        if labels is not None:
            request["labels"] = np.asarray(labels).tolist()
        total = n if n is not None else np.size(request.get("labels", []))
        return Samples(self.table("Sample", request, "sample", "image", total=total, progress=progress))

    def compare(
        self,
        model: str,
        *,
        solvers: Sequence[Choice],
        nfe: Sequence[int],
        schedules: Sequence[Choice | None] = (None,),
        grids: Sequence[Choice] = ("schedule",),
        seeds: int | Sequence[int] = 3,
        samples: int = 2000,
        probes: int = 256,
        reference: str | npt.ArrayLike | None = None,
        features: Features | int = 40,
        progress: bool = True,
    ) -> pd.DataFrame:
        """Measure every solver on every grid of every schedule (None: the model's own) at every number of evaluations.

        One row each: schedule, grid, solver, nfe (asked for), evaluations (counted), and

        - ode_error: 100 × the rms distance per pixel of `probes` samples to the converged solution of the same path
          from the same latents (60 steps of Heun's method on EDM's grid). Paths of other schedules are other maps: an
          isotropic and an anisotropic row cannot be compared by it, their Fréchet distances can.
        - frechet, frechet_min, frechet_max, frechet_spread (half the range): the Fréchet distance of `samples` images
          to the reference, the name of a data set or images in [−1, 1], over `seeds`; every row draws the same
          latents. features is a function images [N, H, W, C] → [N, D], or how many leading principal components of
          the reference's pixels are looked at. NaN without a reference.
        - seconds per 1000 samples; code and message of what a solver cannot do, such as too few evaluations, with NaN
          elsewhere.

        Solvers, grids and schedules are names, or mappings as Sample takes them. `anisoflight.plot_comparison` draws
        the table.

        >>> table = client.compare("digits", solvers=["ab", {"solver": "heun", "second_point": "endpoint"}], nfe=[3, 5],
        ...                        probes=8, progress=False)
        >>> table["solver"].tolist(), table["evaluations"].tolist()
        (['ab', 'ab', 'heun endpoint', 'heun endpoint'], [3, 5, 3, 5])
        """
        return comparison.compare(
            self,
            model,
            solvers=solvers,
            nfe=nfe,
            schedules=schedules,
            grids=grids,
            seeds=seeds,
            samples=samples,
            probes=probes,
            reference=reference,
            features=features,
            progress=progress,
        )

    def denoise(
        self,
        model: str,
        x: npt.ArrayLike,
        sigma: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        *,
        g: npt.ArrayLike | None = None,
        basis: str | None = None,
        k: int | None = None,
        cuts: Sequence[int] | None = None,
        progress: bool = True,
    ) -> Denoised:
        """Evaluate a model at noisy images x [n, H, W, C] or [n, C, H, W]: the denoised image, the flow and the raw
        output.

            flow = M^{-1/2}(D(x) − x),    M = Σ_j g_j P_j

        sigma [n] (or one number) is isotropic noise, g_j = σ²; g [n, J] gives each subspace of `basis` its own
        variance.

        >>> x = np.zeros((2, 8, 8, 1), np.float32)
        >>> client.denoise("digits", x, sigma=0.5).flow.shape
        (2, 8, 8, 1)
        """
        request = _given(model=model, basis=basis, k=k, cuts=cuts)
        return Denoised(self.exchange("Denoise", request, denoise_rows(x, sigma, g, labels), "denoise", progress))

    # Schedules

    def schedule(self, name: str) -> Schedule:
        """The schedule of that name; a model's name means its own schedule, "edm" the fixed one of EDM."""
        return Schedule(self, name)

    def make_schedule(self, name: str, kind: str = "geodesic", *, progress: bool = True, **options: Any) -> Schedule:
        """Make and store a schedule: from a model and a dataset (geodesic), from a dataset and a solver (gaussian),
        or from a formula (edm, log-linear, cosine).

        The geodesic moves at constant speed, ġ √F(g) constant, F the residual measured in one pass over the data.
        A gaussian schedule holds the noise levels that bring a solver of nfe evaluations closest to the dataset's own
        normal law, without a model: sample with that solver and nfe. `info["bench"]` tells the gain over EDM's levels.
        Options are the action's own: model, dataset, T, g0, knots, c, points, samples, seed, replace; of gaussian
        dataset, solver, nfe, basis ("none" or "dct"), k or cuts, T, g0, replace, and refine={"model": …, "latents": 64,
        "iterations": 4, "seed": 0}, which moves the levels to where the solver errs less on a model: `info["refined"]`.
        Kind "steps" (model, schedule, solver, nfe, samples, seed) keeps a schedule's paths and puts the solver's steps
        where they err least on a model; `info["steps"]` tells the gain over uniform steps.

        >>> client.make_schedule("steep", "log-linear", T=400, knots=16, replace=True)
        Schedule('steep')
        """
        show = "schedule" if progress else None
        return Schedule(self, name, self.call("MakeSchedule", show=show, name=name, kind=kind, **options))

    def predict(self, model: str, dataset: str, *, progress: bool = True, **options: Any) -> pd.DataFrame:
        """How much energy each basis, and schedules per class, can save at best, from one pass over a dataset before
        anything is trained; the most promising first.

        Columns basis, per_class, k (dimensions of P_1 per channel), cuts (of dct), energy, stderr, gain = 1 − E/E_iso
        with E_iso that of the best isotropic schedule, and gain_stderr: a gain within two of them is none. Energies are
        corrected for what noise alone would seem to gain.

        Options are the operation's own: T, g0, c, points, samples, seed, bases (of dct, haar, pca, pca_per_class).

        >>> table = client.predict("digits", "blocks", T=400, points=8, samples=4, bases=["dct"])
        >>> sorted(set(table["basis"]))
        ['dct', 'none']
        """
        request = {"model": model, "dataset": dataset, **options}
        frame = self.table("Predict", request, "predict", "sample", progress=progress).to_pandas()
        names = ["none", "dct", "haar", "pca", "pca_per_class"]
        frame["basis"] = [names[i] for i in frame["basis"]]
        frame["per_class"] = frame["per_class"].astype(bool)
        cuts = zip(frame.pop("cut"), frame.pop("cut_2"), strict=True)
        frame.insert(3, "cuts", [[cut for cut in pair if cut] for pair in cuts])
        return frame

    def bench_schedule(
        self,
        dataset: str,
        schedules: Sequence[str | Mapping[str, Any]] = ("edm",),
        solvers: Sequence[str] = ("heun",),
        nfe: Sequence[int] = (5, 9, 17),
        *,
        progress: bool = True,
        **options: Any,
    ) -> pd.DataFrame:
        """Run solvers on schedules on a dataset's own Gaussian, where a sampler's output is known in closed form.

        Columns schedule, solver, nfe, steps, label (−1: the whole dataset), subspace (−1: the whole image), dims,
        variance (the subspace's share), w2_squared = spread + shift: the squared 2-Wasserstein distance over the data's
        total variance; noise: what independent errors of a network would add. No model, no samples, no noise.

        Options are the operation's own: grid, per_class; basis ("dct") and k or cuts, the bands of isotropic schedules;
        covariance="full" for schedules on, or seen by, any other basis (then noise is NaN).

        >>> table = client.bench_schedule("blocks", solvers=["euler", "dpmpp2m"], nfe=[5])
        >>> table["solver"].tolist(), table["subspace"].tolist()
        (['euler', 'euler', 'dpmpp2m', 'dpmpp2m'], [-1, 0, -1, 0])
        """
        lists = {"schedules": list(schedules), "solvers": list(solvers), "nfe": list(nfe)}
        request = {"dataset": dataset, **lists, **options}
        frame = self.table("BenchSchedule", request, "bench", "row", progress=progress).to_pandas()
        frame["schedule"] = [lists["schedules"][i] for i in frame["schedule"]]
        frame["solver"] = [lists["solvers"][i] for i in frame["solver"]]
        return frame

    def put_schedule(
        self,
        name: str,
        table: Any,
        basis: str | None = None,
        k: int | None = None,
        replace: bool = False,
        *,
        cuts: Sequence[int] | None = None,
    ) -> Schedule:
        """Store a schedule of your own: a DataFrame, Arrow table or dict with columns t, g and, where needed, label
        and subspace; or the path of a file.

        Per label (−1, the default: all) and subspace (default 0, which is P_1) t increases from 0 and g > 0
        increases; all paths end at one T and one g(T). basis is none, dct (with k, or cuts for nested bands), haar or
        the name of a stored one; "pca" and "pca_per_class" mean the one that a model was trained on.

        A .csv file holds such a table. A .json file is what `Schedule.save` wrote: it knows its basis, whose vectors
        in basis.safetensors beside it are stored first, under the name `basis` (default: the schedule's).

        >>> client.put_schedule("two-knots", {"t": [0, 400], "g": [1e-9, 400]}, replace=True)
        Schedule('two-knots')
        """
        if isinstance(table, str | PathLike):
            path = Path(table)
            if path.suffix == ".json":
                if k is not None or cuts is not None:
                    raise ValueError("a schedule file knows its k and cuts")
                return self._import_schedule(name, path, basis, replace)
            table = pd.read_csv(path)
        command = _given(op="PutSchedule", name=name, basis=basis, k=k, cuts=cuts, replace=replace)
        uploads.send(self._connection, command, uploads.schedule_table(table))
        return self.schedule(name)

    def _import_schedule(self, name: str, path: Path, basis: str | None, replace: bool) -> Schedule:
        file, vectors = read_schedule(path)
        if vectors is not None:
            basis = basis or name
            self.put_basis(basis, vectors, replace=replace)
        self.call("ImportSchedule", **_given(name=name, file=file, basis=basis, replace=replace))
        return self.schedule(name)

    def delete_schedule(self, schedule: str) -> None:
        self.call("DeleteSchedule", schedule=schedule)

    def put_basis(self, name: str, vectors: Any, labels: npt.ArrayLike | None = None, replace: bool = False) -> None:
        """Store a basis: the orthonormal rows [k, H, W] of P_1, or a dict of such arrays by label."""
        command = {"op": "PutBasis", "name": name, "replace": replace}
        uploads.send(self._connection, command, uploads.basis_table(vectors, labels))

    def basis(self, name: str | None = None, *, schedule: str | None = None) -> Vectors:
        """The rows [k, H, W] of P_1 by label (−1 where all labels share them), of the stored basis of that name or of
        the one that a schedule has.
        """
        rows = self.table("Basis", _given(basis=name, schedule=schedule))
        labels, vectors = to_numpy(rows["label"]), to_numpy(rows["vector"])
        return {int(label): vectors[labels == label] for label in np.unique(labels)}

    def make_basis(
        self,
        name: str,
        kind: str,
        dataset: str,
        k: int | None = None,
        *,
        clusters: Sequence[Sequence[int]] | None = None,
        replace: bool = False,
        progress: bool = True,
    ) -> dict[str, Any]:
        """Make and store a basis: P_1 holds the k (default H·W/4) leading principal components of a dataset's images
        ("pca"), of each class's own ("pca_per_class"), or the means of blocks of pixels ("haar").

        clusters lists classes that share components. The answer's `spans` tell, for each set of components, the labels
        that share it, the number of images, and the share of their variance that lies in P_1.

        >>> made = client.make_basis("blocks-pca", "pca", "blocks", k=8, replace=True)
        >>> made["k"], client.basis("blocks-pca")[-1].shape
        (8, (8, 8, 8))
        """
        request = _given(name=name, kind=kind, dataset=dataset, k=k, clusters=clusters, replace=replace)
        return self.call("MakeBasis", show="basis" if progress else None, **request)

    def delete_basis(self, basis: str) -> None:
        self.call("DeleteBasis", basis=basis)

    # Datasets

    def put_dataset(
        self,
        name: str,
        images: npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        replace: bool = False,
        progress: bool = True,
    ) -> None:
        """Store images [n, H, W, C] or [n, C, H, W], uint8 or float32 in [−1, 1], with integer labels [n] if there
        are classes.

        >>> client.put_dataset("noise", np.zeros((4, 8, 8, 1), np.uint8), labels=[0, 1, 0, 1], replace=True)
        >>> client.dataset("noise").labels.tolist()
        [0, 1, 0, 1]
        """
        command = {"op": "PutDataset", "name": name, "replace": replace}
        uploads.send(self._connection, command, uploads.dataset_table(images, labels), "upload" if progress else None)

    def draw_dataset(
        self, name: str, model: str, n: int, *, seed: int = 0, replace: bool = False, progress: bool = True
    ) -> dict[str, Any]:
        """Store n images drawn from a mixture: a dataset whose law is known. They may leave [−1, 1]."""
        show = "draw" if progress else None
        return self.call("MakeDataset", show=show, name=name, model=model, n=n, seed=seed, replace=replace)

    def dataset(self, name: str, offset: int = 0, limit: int | None = None, progress: bool = True) -> Dataset:
        """Read a dataset, or `limit` images of it from `offset` on, as it was uploaded."""
        request = _given(dataset=name, offset=offset, limit=limit)
        return Dataset(self.table("Dataset", request, "read", "image", progress=progress))

    def delete_dataset(self, dataset: str) -> None:
        self.call("DeleteDataset", dataset=dataset)

    # Training

    def create_run(self, name: str, stage: str, dataset: str, **settings: Any) -> Run:
        """Create a training run: stage "pretrain", "isotropic" or "anisotropic", on a dataset.

        Settings are the training configuration's own names: model or network, schedule, family, batch, lr,
        schedule_lr, c, T, g0, knots, init, estimator, probes, train_network, seed and so on; each has a default.
        """
        self.call("CreateRun", name=name, stage=stage, dataset=dataset, **settings)
        return Run(self, name)

    def run(self, name: str) -> Run:
        """The run of that name; `NotFoundError` if there is none."""
        run = Run(self, name)
        _ = run.info
        return run

    def evaluate_model(self, model: str, dataset: str, *, progress: bool = True, **options: Any) -> pd.DataFrame:
        """Loss by noise level: columns label, subspace, t, sigma, loss, residual, stderr.

        Options are the operation's own: schedule, points, samples, c, seed.
        """
        request = {"model": model, "dataset": dataset, **options}
        return self.table("EvaluateModel", request, "evaluate", "level", progress=progress).to_pandas()

    def schedule_gradient(
        self,
        schedule: str,
        model: str,
        images: npt.ArrayLike,
        noise: npt.ArrayLike,
        t: npt.ArrayLike,
        *,
        probe: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        mode: str | None = None,
        c: float | None = None,
        progress: bool = True,
    ) -> Gradient:
        """The trajectory loss Σ_j ω_j |P_j(flow + ε)|² of every row, and its gradient with respect to the schedule.

            d loss = Σ_j A_j dg_j(t) + B_j dġ_j(t),    ω_j = ġ_j² / (g_j (c + g_j))

        noise is ε, as images; t [n] are the times; probe (default: drawn signs ±1) estimates the trace in mode "full".
        """
        request = _given(schedule=schedule, model=model, mode=mode, c=c)
        rows = gradient_rows(images, noise, probe, t, labels)
        events: dict[str, Any] = {}
        table = self.exchange("ScheduleGradient", request, rows, "gradient", progress, events)
        return Gradient(table, events)


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Entries with names as a DataFrame indexed by them."""
    return pd.DataFrame.from_records(rows, columns=None if rows else ["name"]).set_index("name")


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
