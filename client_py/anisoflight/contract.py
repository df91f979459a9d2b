"""What the server's contract says of its operations. Made by go generate ./flight/api; do not edit."""

from __future__ import annotations

READS = frozenset(
    {
        "Sample",
        "EvaluateSchedule",
        "WatchRun",
        "EvaluateModel",
        "Predict",
        "BenchSchedule",
        "Dataset",
        "Basis",
        "Model",
        "ServerInfo",
        "ListModels",
        "DescribeModel",
        "ListSchedules",
        "ExportSchedule",
        "PlanSampler",
        "ExportStart",
        "ExportStatistics",
        "ExportFitted",
        "ListBases",
        "ListDatasets",
        "Advise",
        "ListRuns",
        "GetRun",
    }
)
"""Operations that change nothing that is stored, which a client may repeat."""

FIELDS = {
    "Sample": """
        model: str, required. Name of the model.
        n: int. Number of images; a conditional model draws their labels from seed + i.
        labels: Sequence[int]. In place of n: one image per label, −1 for none.
        seed: int, default 0. Image i is made from seed + i alone.
        steps: int. Solver steps.
        nfe: int. In place of steps: at most so many evaluations of the network, by the most steps that fit; 9 of heun
            needs the second point endpoint.
        solver: str, default the schedule's own, else heun. Name of the solver: ab, deis, dpmpp2m, dpmpp3m,
            dpmpp3m_taylor, euler, fitted, heun, ipndm, ipndm_v, local, unipc.
        order: int, default ab 3, ipndm 4, ipndm_v 4, dpmpp3m 3, dpmpp3m_taylor 3, unipc 3, deis 3, local 2, of unipc
            and dpmpp3m 2 below 13 evaluations. Of the solvers that have several.
        variant: str, default bh2. Of unipc: bh1, bh2.
        second_point: str, default midpoint. Of heun, where the midpoint is in t: midpoint, endpoint.
        grid: str | Mapping[str, Any], default schedule. Where the steps lie: schedule, edm, polynomial, logsnr.
        denoise_to_zero: bool. End with the denoised image of the last evaluation.
        lower_order_final: bool, default true. Of dpmpp, unipc and local: lower the order towards the end.
        corrector: bool. Of local: correct each step by the evaluation after it, at no cost.
        warmup: str, default euler. First step of ab, ipndm, ipndm_v, dpmpp2m, dpmpp3m, dpmpp3m_taylor, deis, at no
            further evaluation: euler, heun.
        S_churn: float, default 0: none. Of euler, heun: EDM's stochastic churn.
        S_min: float, default 0. Churn from this noise level on.
        S_max: float, default no bound. Churn up to this noise level.
        S_noise: float, default 1. Standard deviation of the noise that churn adds.
        guidance: float, default 1: none. S in D₀ + s (D₁ − D₀), D₀ without a label or of the guide.
        guidance_interval: Sequence[float], default all. Noise levels that are guided, above the first, up to the
            second: JSON such as [0.2,3].
        guide: str, default the model without a label. Another model, for D₀, which sees the labels, too.
        schedule: str | Mapping[str, Any], default the model's own. A schedule's name, edm, or JSON such as
            {"edm":{"T":400}}.
        start: str, default matched where it carries one. Law that sampling begins from, noise alone or the one that
            the schedule carries: standard, matched.
        every: int, default 0: none. Previews, the denoised estimate, each so many steps.
        dtype: str, default uint8, and float32, all there is, for a model whose data have units of their own. Type of
            the values: uint8, float32.
        layout: str, default HWC. Order of the axes: HWC, CHW.
        batch_bytes: int, default 2 MiB. About so many bytes a reply batch.
    """,
    "EvaluateModel": """
        model: str, required. Name of the model.
        dataset: str, required. Name of the data set.
        schedule: str | Mapping[str, Any], default the model's own. Whose noise is added.
        points: int, default 32. Noise levels.
        samples: int, default 64. Images per noise level.
        seed: int, default 0. Of images and noise.
        c: float, default the data's variance, summed over an image. Of the weight ġ²/(g(c+g)).
    """,
    "Predict": """
        model: str, required. Name of the model whose residual is measured.
        dataset: str, required. Name of the data set to measure it on.
        T: float, default the end of the model's own schedule, else as the data need. End of time, a variance.
        g0: float, default 1e-9. Variance at t = 0.
        c: float, default the data's variance, summed over an image. Of the weight ġ²/(g(c+g)).
        points: int, default 64. Noise levels measured.
        samples: int, default 32. Images per noise level and class.
        seed: int, default 0. Of the images and the noise.
        bases: Sequence[str], default all. List of dct, haar, pca and pca_per_class.
    """,
    "BenchSchedule": """
        dataset: str, required. Name of the data set whose Gaussian is sampled.
        schedules: Sequence[str | Mapping[str, Any]], default edm. List of schedules.
        solvers: Sequence[str], default heun. List of solvers: ab, deis, dpmpp2m, dpmpp3m, dpmpp3m_taylor, euler,
            fitted, heun, ipndm, ipndm_v, local, unipc.
        nfe: Sequence[int], required. List of evaluations, such as 5,9,17.
    """,
    "MakeModel": """
        name: str, required. Name of the new model.
        kind: str, default mixture. What is made: mixture.
        replace: bool. Replace a model of that name.
        dataset: str. Name of the data set whose classes it has.
        covariance: str, default dct. Kept of each class: dct, the channels of each frequency, or full.
        floor: float, default 1e-4. Least variance in any direction.
        shape: Sequence[int], default [1,dimensions,1]. [H,W,C] of an image.
        weights: Sequence[float], default equal. Of the components.
        means: Sequence[Sequence[float]]. Of the components, instead of a data set: [[...],...].
        covariances: Sequence[Sequence[Sequence[float]]]. Of the components: [[[...],...],...].
        labels: Sequence[int], default none. Classes of the components.
    """,
    "MakeSchedule geodesic": """
        replace: bool. Replace a schedule of that name.
        model: str, required. Name of the model whose residual is the metric.
        dataset: str, required. Name of the data set to measure it on.
        T: float, default the end of the model's own schedule, else as the data need. End of time, a variance.
        nfe: int. In place of T: at most so many evaluations of Heun's method, for which T is chosen on the data's own
            Gaussian.
        second_point: str, default endpoint. Of that method; give the one that samples will be drawn with, as each has
            its own T: endpoint, midpoint.
        g0: float, default 1e-9. Variance at t = 0.
        knots: int, default 32. Knots of the path.
        order: int, default 2. Order of the solver that the path is for; 1 gives the least energy, as the paper's loss
            has it.
        c: float, default the data's variance, summed over an image. Of the weight ġ²/(g(c+g)).
        points: int, default 160. Noise levels measured.
        samples: int, default 24. Images per noise level.
        seed: int, default 0. Of the noise.
        basis: str, default none. None, or a basis: each subspace has its own path.
        k: int, default H·W/4. Of dct and haar: dimensions of P_1 per channel.
        cuts: Sequence[int]. Of dct: nested bands instead of k, such as [1,2,4].
        per_class: bool. Each class has its own paths.
        statistics: bool. Keep the network's errors by DCT frequency, for the solver local: of isotropic noise, with
            basis none.
    """,
    "MakeSchedule gaussian": """
        replace: bool. Replace a schedule of that name.
        dataset: str, required. Name of the data set whose Gaussian is measured.
        model: str, default the data's own units, EDM's levels. Name of a model whose units and noise levels rule.
        solver: str, required. Name of the solver to sample with: ab, deis, dpmpp2m, dpmpp3m, dpmpp3m_taylor, euler,
            fitted, heun, ipndm, ipndm_v, local, unipc.
        nfe: int, required. At most so many evaluations of the network.
        T: float, default 6400. End of time, a variance.
        g0: float, default 1e-9. Variance at t = 0.
        basis: str, default none. None, or a basis: each subspace has its own path.
        k: int, default H·W/4. Of dct and haar: dimensions of P_1 per channel.
        cuts: Sequence[int]. Of dct: nested bands instead of k, such as [1,2,4].
        start: Mapping[str, Any], default from noise alone. Keep the data's own law, which sampling then starts from:
            JSON such as {"per_class":false}.
    """,
    "MakeSchedule start": """
        replace: bool. Replace a schedule of that name.
        per_class: bool, default true. A law for each class that has images.
        dataset: str, required. Name of the data set whose mean and covariance are measured.
        model: str. Name of a model that sees the data in its own units.
        schedule: str | Mapping[str, Any], default edm. Whose paths are kept: a name, a model's for its own, or JSON
            such as {"edm":{"T":400}}.
        sigma_max: float, default the schedule's end. Start at this lower noise level.
    """,
    "MakeSchedule fit": """
        replace: bool. Replace a schedule of that name.
        model: str, required. Name of the model whose trajectories are followed.
        schedule: str | Mapping[str, Any], required. A schedule with statistics that all classes share.
        nfe: int, required. Number of evaluations of the network.
        order: int, default 2. Of the solver local, where the fit begins, 1 to 3.
        grid: str | Mapping[str, Any], default polynomial. Of the nodes: schedule, edm, polynomial, logsnr.
        isotropic: bool. One set of coefficients for all frequencies, from DPM-Solver++ instead of local.
        lower_order_final: bool, default true. The last steps look back on less.
        samples: int, default 256. Trajectories to fit to, as many to choose the ridge, and as many to judge.
        seed: int, default 0. Of the trajectories.
    """,
    "MakeSchedule few": """
        replace: bool. Replace a schedule of that name.
        model: str, required. Name of the model to sample.
        dataset: str, required. Name of the data set that samples are compared with.
        nfe: int, required. At most so many evaluations of the network.
        solvers: Sequence[str], default ipndm, dpmpp2m, unipc, local, fitted. List of solvers to try, one at least
            besides local and fitted: ab, deis, dpmpp2m, dpmpp3m, dpmpp3m_taylor, euler, fitted, heun, ipndm, ipndm_v,
            local, unipc.
        samples: int, default 512. Of each try, and as many held back.
        budget: str, default seconds. With minutes, levels and coefficients are learned through the network, too:
            seconds, minutes.
        seed: int, default 0. Of the samples.
        guidance: float, default 1: none. S in D₀ + s (D₁ − D₀), D₀ without a label or of the guide.
        guidance_interval: Sequence[float], default all. Noise levels that are guided, above the first, up to the
            second: JSON such as [0.2,3].
        guide: str, default the model without a label. Another model, for D₀, which sees the labels, too.
    """,
    "MakeSchedule edm, MakeSchedule log-linear, MakeSchedule cosine": """
        replace: bool. Replace a schedule of that name.
        T: float, default 6400. End of time, a variance.
        g0: float, default 1e-9. Variance at t = 0.
        knots: int, default 32. Knots of the path.
    """,
    "MakeBasis": """
        name: str, required. Name of the new basis.
        kind: str, required. Pca, pca_per_class or haar.
        dataset: str, required. Name of the data set to make it of.
        model: str. Name of a model that sees the data in its own units.
        k: int, default a quarter of the pixels. Dimensions of the first subspace per channel.
        clusters: Sequence[Sequence[int]]. Of pca_per_class: classes that share components, such as [[0,6,8],[1,7]].
        replace: bool. Replace a basis of that name.
    """,
    "Advise": """
        dataset: str, required. Name of the data set.
        model: str, default none, that of the data's Gaussian is computed. Name of a model whose residual is measured.
        nfe: Sequence[int], default 3,5,9,18. List of evaluations to recommend samplers for, at most 16.
        samples: int, default 256. Images per noise level that a model is measured with, of all classes together.
        seed: int, default 0. Of the images and noise that a model is measured with.
    """,
    "CreateRun": """
        network: Mapping[str, Any]. JSON of a new network: EDM's keyword arguments, as in a model's config.json.
        model: str. Name of the model to start from, instead of a new network.
        schedule: str, default the model's own. Name of the schedule to start from.
        family: Mapping[str, Any], default one, shared, and in the stage anisotropic two, {"basis":"dct"}. Which paths
            there are: JSON such as {"per_class":false,"basis":"dct","k":16}.
        batch: int, default 256. Images per step.
        kimg: float, default 102.4 from a model, 1200 in pretrain or without one. Length in thousands of images, which
            ramps refer to.
        seed: int, default 0. Of weights, data order, noise and probes.
        flip: bool. Mirror half of the images.
        precision: str, default float32. Arithmetic of the network's activations and products: float32, tf32,
            bfloat16.
        microbatch: int, default an equal share, or as many as fit. Images of a batch that a device sees at a time.
        train_network: bool, default true. Train the network, not the schedule alone.
        train_schedule: bool, default true. Train the schedule, not the network alone.
        keep: str, default samples of a run from a model of 6.4 kimg or more, else last. What the run gives when its
            model is saved: the best state by samples, or by energy, or the last state.
        for_nfe: int, default 9. Evaluations of Heun's method that samples are judged by, odd.
        lr: float, default 1e-3 in pretrain, 1e-4 elsewhere. Learning rate.
        beta1: float, default 0.9. Of the network's Adam.
        beta2: float, default 0.999. Of the network's Adam.
        lr_ramp: str, default cosine. Shape of the network's learning rate: cosine, constant, published, completed.
        lr_warmup: float, default 0. Kimg until the rate is reached.
        lr_hold: float, default 0.5. Of cosine: part of the length before it falls.
        lr_final: float, default 0. Of cosine: last rate as a part of lr.
        ema_halflife_kimg: float, default 3 % of the length in pretrain and 5 % elsewhere, at most 500. Half-life in
            kimg of the averaged network.
        ema_rampup: float, default 0.05, and 0 from a model: no bound. Largest half-life as a part of the images seen
            so far.
        clip: float, default none. Largest norm of the network's gradient.
        T: float, default that of the start, else as the data need. End of time, a variance.
        g0: float, default that of the start, else 1e-9. Variance at t = 0.
        knots: int, default those of the start, else 32. Number of knots of each path.
        init: str, default geodesic of a model, edm of a new network. Kind of a new schedule: geodesic is measured
            before the first step, table is schedule as it is.
        c: float, default the data's variance, summed over an image. C of the weight ġ²/(g(c+g)).
        order: int, default 2. Order p of the solver that the schedule is learned for, a factor (T ġ/g)^{p−1} in the
            weight: 1 is the paper's loss.
        schedule_lr: float, default 1e-2 in isotropic from a form such as edm, else such that the rates of all steps
            add up to 1.2, and at most 2e-2. The schedule's learning rate.
        schedule_beta1: float, default 0.9. Of the schedule's Adam.
        schedule_beta2: float, default 0.999. Of the schedule's Adam.
        schedule_lr_ramp: str, default cosine. Shape of its rate, as lr_ramp: cosine, constant, published, completed.
        schedule_lr_warmup: float, default 0. Kimg until its rate is reached.
        schedule_lr_hold: float, default 0. Part of the length before its rate falls.
        schedule_lr_final: float, default 0.1. Last rate as a part of schedule_lr.
        stratified: bool, default true. One t from each of batch equal parts of [0, T].
        estimator: str, default auto. Of the schedule's gradient: auto, full, backprop, explicit.
        probe: str, default rademacher. Law of the estimator's probes: rademacher, sphere, gaussian.
        probes: int, default 1. Number of probes averaged per sample.
        ratio_embedding: bool, default true in the stage anisotropic where the network is trained. Let the network see
            the ratios of the g_j.
        p_mean: float, default -1.2. Of pretrain's ln σ: mean.
        p_std: float, default 1.2. Of pretrain's ln σ: deviation shared by the subspaces.
        p_std_subspace: float, default 0.5 in anisotropic of a network that is trained and sees the ratios, else 0. Of
            pretrain's ln σ, elsewhere of the network's about the schedule's: deviation of each subspace.
    """,
}
"""The fields of requests with their types and defaults, for docstrings."""
