"""What the server's contract says of its operations. Made by go generate ./flight/api; do not edit."""

from __future__ import annotations

READS = frozenset(
    """
    Sample EvaluateSchedule WatchRun EvaluateModel Predict Dataset Basis Model ServerInfo ListModels DescribeModel
    ListSchedules ExportSchedule ExportStart ListPlans PlanSampler ListBases ListDatasets ListRuns GetRun
    """.split()  # noqa: SIM905
)
"""Operations that change nothing that is stored, which a client may repeat."""

FIELDS = {
    "Sample": """
        model: str, required. Name of the model.
        n: int. Number of images; a conditional model draws the label of image i from seed + i.
        labels: Sequence[int]. In place of n: the label of each image, −1 for none.
        seed: int, default 0. Image i is made from seed + i.
        steps: int. Number of solver steps.
        nfe: int. In place of steps: largest number of network evaluations; heun uses an odd number with second_point
            endpoint or grid edm.
        solver: str, default heun. Name of the solver: ab, deis, dpmpp2m, dpmpp3m, dpmpp3m_taylor, euler, heun, ipndm,
            ipndm_v, unipc.
        order: int, default 3 for ab, dpmpp3m, dpmpp3m_taylor, unipc, deis; 4 for ipndm, ipndm_v; below 13 evaluations
            2 for dpmpp3m, dpmpp3m_taylor, unipc. Order, for solvers with several.
        variant: str, default bh2. Variant of unipc: bh1, bh2.
        second_point: str, default midpoint. For heun: second evaluation at the midpoint in t, or at the endpoint, of
            the step.
        grid: str | Mapping[str, Any], default schedule. Times of the steps: schedule, edm, polynomial, logsnr, or
            JSON such as {"sigma":[80,5,0]}.
        denoise_to_zero: bool. Return the denoised image of the last evaluation.
        lower_order_final: bool, default true. For dpmpp and unipc: lower the order in the last steps.
        warmup: str, default euler. First step of ab, ipndm, ipndm_v, dpmpp2m, dpmpp3m, dpmpp3m_taylor, deis: euler,
            or heun, which costs no further evaluation.
        S_churn: float, default 0: none. EDM's stochastic churn, for euler, heun.
        S_min: float, default 0. Lowest noise level with churn.
        S_max: float, default no bound. Highest noise level with churn.
        S_noise: float, default 1. Standard deviation of the noise that churn adds.
        guidance: float, default 1: none. Scale s in D₀ + s (D₁ − D₀): D₁ is the model's, D₀ the guide's.
        guidance_interval: Sequence[float], default all. Noise levels with guidance, above the first and up to the
            second, such as [0.2,3].
        guide: str, default the model without a label. Another model for D₀, which is given the labels.
        schedule: str | Mapping[str, Any], default the model's own. A schedule's name, edm, or JSON such as
            {"edm":{"T":400}}.
        start: str, default matched if the schedule carries one, otherwise standard. Law to start from: standard is
            noise, matched the law that the schedule carries.
        plan: str | Plan | Mapping[str, Any]. A plan's name, or its JSON, in place of a solver on a schedule.
        other_weights: bool. Take a plan that was made for other weights than the model's.
        every: int, default 0: never. Send the denoised estimate every N steps.
        dtype: str, default uint8, or float32 for models with their own units. Type of the values: uint8, float32.
        layout: str, default HWC. Order of the axes: HWC, CHW.
        batch_bytes: int, default 2 MiB. Approximate size of a reply batch in bytes.
    """,
    "EvaluateModel": """
        model: str, required. Name of the model.
        dataset: str, required. Name of the data set.
        schedule: str | Mapping[str, Any], default the model's own. Schedule whose noise is added.
        points: int, default 32. Number of noise levels.
        samples: int, default 64. Images per noise level.
        seed: int, default 0. Seed of the images and the noise.
        c: float, default the data's variance, summed over an image. Constant c in the weight ġ²/(g(c+g)).
    """,
    "Predict": """
        model: str, required. Name of the model whose residual is measured.
        dataset: str, required. Name of the data set to measure it on.
        T: float, default that of the model's own schedule, otherwise as the data need. Noise variance at the end.
        g0: float, default 1e-9. Noise variance at t = 0.
        c: float, default the data's variance, summed over an image. Constant c in the weight ġ²/(g(c+g)).
        points: int, default 64. Number of noise levels.
        samples: int, default 32. Images per noise level and class.
        seed: int, default 0. Seed of the images and the noise.
        bases: Sequence[str], default all. List of dct, haar, pca and pca_per_class.
    """,
    "MakeModel": """
        name: str, required. Name of the new model.
        kind: str, default mixture. Kind of the model: mixture.
        replace: bool. Replace a model of that name.
        dataset: str. Name of a data set; each class becomes a component.
        covariance: str, default dct. Covariance of a class: full, or dct, which keeps the channels of each frequency.
        floor: float, default 1e-4. Smallest variance in any direction.
        shape: Sequence[int], default [1,dimensions,1]. [H,W,C] of an image.
        weights: Sequence[float], default equal. Weights of the components.
        means: Sequence[Sequence[float]]. Means of the components, in place of a data set: [[...],...].
        covariances: Sequence[Sequence[Sequence[float]]]. Covariances of the components: [[[...],...],...].
        labels: Sequence[int], default none. Class of each component.
    """,
    "MakeSchedule geodesic": """
        replace: bool. Replace a schedule of that name.
        model: str, required. Name of the model whose residual is measured.
        dataset: str, required. Name of the data set to measure it on.
        T: float, default that of the model's own schedule, otherwise as the data need. Noise variance at the end.
        nfe: int. In place of T: number of evaluations of Heun's method for which T is chosen, on the data's Gaussian.
        second_point: str, default endpoint. With nfe: second point of Heun's method; choose the one that you sample
            with: endpoint, midpoint.
        g0: float, default 1e-9. Noise variance at t = 0.
        knots: int, default 32. Knots of the path.
        order: int, default 2. Order of the solver that the path is for; 1 gives the least energy.
        c: float, default the data's variance, summed over an image. Constant c in the weight ġ²/(g(c+g)).
        points: int, default 160. Number of noise levels.
        samples: int, default 24. Images per noise level.
        seed: int, default 0. Seed of the noise.
        basis: str, default none. Basis whose subspaces each have a path; none for a single path.
        k: int, default H·W/4. For dct and haar: dimensions of P_1 per channel.
        cuts: Sequence[int]. For dct: nested bands in place of k, such as [1,2,4].
        per_class: bool. One set of paths for each class.
    """,
    "MakeSchedule start": """
        replace: bool. Replace a schedule of that name.
        per_class: bool, default true. One law for each class that has images.
        dataset: str, required. Name of the data set that the law is measured on.
        model: str. Name of a model whose normalization is applied to the data.
        schedule: str | Mapping[str, Any], default edm. A schedule's or model's name, or JSON such as
            {"edm":{"T":400}}, whose paths are kept.
        sigma_max: float, default the schedule's end. Noise level to start at.
    """,
    "MakeSchedule edm, MakeSchedule log-linear, MakeSchedule cosine": """
        replace: bool. Replace a schedule of that name.
        T: float, default 6400. Noise variance at the end.
        g0: float, default 1e-9. Noise variance at t = 0.
        knots: int, default 32. Knots of the path.
    """,
    "MakePlan": """
        name: str, default not stored. Name to store the plan by.
        replace: bool. Replace a plan of that name.
        model: str, required. Name of the model to sample.
        dataset: str, default none. Data set to compare samples with.
        samples: int, default 512. With dataset: samples of each, and held back.
        nfe: int, required. Largest number of network evaluations.
        solvers: Sequence[str], default ipndm, dpmpp2m, unipc, deis. List of solvers to try: ab, deis, dpmpp2m,
            dpmpp3m, dpmpp3m_taylor, euler, heun, ipndm, ipndm_v, unipc.
        budget: int, default what the samples of each need, or without images as many as the network makes in a
            minute, at least 4000. Largest number of evaluations.
        seconds: float. In place of budget, about the seconds that the evaluations may take.
        learn_guidance: bool, default of MakePlan true. Learn the guidance of each evaluation, too, which the client
            of OfferNetwork must obey.
        learn: bool, default if the budget suffices, and true raises the default budget so that it does. Learn levels
            and coefficients through the network, too.
        seed: int, default 0. Seed of the samples.
        guidance: float, default 1: none. Scale s in D₀ + s (D₁ − D₀): D₁ is the model's, D₀ the guide's.
        guidance_interval: Sequence[float], default all. Noise levels with guidance, above the first and up to the
            second, such as [0.2,3].
        guide: str, default the model without a label. Another model for D₀, which is given the labels.
    """,
    "MakeBasis": """
        name: str, required. Name of the new basis.
        kind: str, required. Kind of the basis: pca, pca_per_class or haar.
        dataset: str, required. Name of the data set.
        model: str. Name of a model whose normalization is applied to the data.
        k: int, default a quarter of the pixels. Dimensions of P_1 per channel.
        clusters: Sequence[Sequence[int]]. For pca_per_class: classes that share components, such as [[0,6,8],[1,7]].
        replace: bool. Replace a basis of that name.
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
