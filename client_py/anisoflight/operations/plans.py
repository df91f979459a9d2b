"""The operations on plans: samplers as numbers, searched, stored, and made of a solver on a schedule."""

import operator
import re
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import pandas as pd

from ..errors import BadRequestError, warn
from ..plans.plan import Plan
from ..plans.storage import FORMULAS
from ..wire.arrays import integers
from ..wire.listing import frame_of
from ..wire.progress import Bar, interrupts_to
from . import documented
from .schedules import Schedules


class Plans(Schedules):
    """Plans on the server."""

    @documented("MakePlan")
    def few(
        self,
        model: str,
        nfe: int,
        dataset: str | None = None,
        *,
        budget: int | str | None = None,
        learn: bool | None = None,
        name: str | None = None,
        seed: int = 0,
        progress: bool = True,
        **options: Any,
    ) -> Plan:
        """The best sampler of a model for few evaluations: a `Plan`, for `Client.sample` and for networks outside the
        server. `anisoflight.torch.few` is the same search for a network that stays in torch.

        Without a data set, solvers on several noise levels, and coefficients that are fitted to the network's
        trajectories or learned through it, are compared by the squared errors of their samples to converged ones from
        the same noise: by the geometric mean of these errors' mean and geometric mean. With `dataset` they are compared
        by Fréchet distances to its images, and may start from their normal law.

        `budget` is a number of evaluations, or seconds as "90 s". By default it is what the search takes, without a
        data set at most about a minute, or 4000 evaluations. Levels and coefficients are learned if it suffices:
        `learn` leaves that out if False, and raises the default budget if True. A plain sampler is the result unless
        the gain of another is clear on other samples. `plan.info` has every try, and the gain as `ratio` and
        `ratio_stderr`. With a `name` the server stores the plan, or a warning says why it could not. The plan is for
        the guidance that is given here, of which each evaluation's is learned, too, unless `learn_guidance=False`.
        Ctrl-C ends the search with the best so far.

        >>> plan = client.few("digits", nfe=3, samples=64, progress=False)
        >>> client.sample("digits", n=4, plan=plan).nfe.tolist()
        [3, 3, 3, 3]
        """
        request = {"model": model, "nfe": nfe, "dataset": dataset, "name": name, "seed": seed}
        request |= budget_fields(budget, learn)
        reply = self._searched({**request, **options}, progress)
        warn(reply.pop("notes", []))
        plan = Plan.whole(reply)
        if progress:
            print(plan.told)
        return plan

    def _searched(self, request: dict[str, Any], progress: bool) -> dict[str, Any]:
        """The answer of MakePlan. Ctrl-C ends the search once its token is known, and leaves it if pressed again."""
        event, token, ended = {}, None, False

        def end() -> None:
            nonlocal ended
            if token is None or ended:
                raise KeyboardInterrupt
            ended = True
            self.call("EndSearch", search=token)

        with interrupts_to(end):
            for event in Bar("few", "step", show=progress).over(self.action("MakePlan", request)):
                token = event.get("search", token)
        return event

    def plans(self) -> pd.DataFrame:
        """The stored plans. A notebook shows the main columns."""
        return frame_of(self.call("ListPlans")["plans"], "nfe", "steps", "solver", "summary")

    def put_plan(self, name: str, plan: Plan, replace: bool = False) -> None:
        """Store a plan under a name, for `plan=name` of `sample`.

        >>> plan = client.plan("edm", sigma_min=0.002, sigma_max=80, solver="unipc", nfe=5)
        >>> client.put_plan("unipc-5", plan, replace=True)
        >>> client.sample("digits", n=1, plan="unipc-5").nfe.tolist(), "unipc-5" in client.plans().index
        ([5], True)
        """
        self.call("ImportPlan", name=name, plan=plan.wire, replace=replace)

    @documented("Sample")
    def plan(
        self,
        schedule: str | Mapping[str, Any] | None = None,
        *,
        plan: str | None = None,
        model: str | None = None,
        sigma_min: float | None = None,
        sigma_max: float | None = None,
        label: int | None = None,
        labels: npt.ArrayLike | None = None,
        **options: Any,
    ) -> Plan:
        """A sampler as numbers, for networks outside the server: callable, and a scheduler of diffusers. It is the
        stored `plan` of that name, or a solver on a schedule.

        Options are those of `Client.sample` that shape the sampler: steps or nfe, solver, order, grid and so on. A
        sampler keeps to the noise levels of its network's training: give `model`, or for a network outside the server
        `sigma_min` and `sigma_max`. The default is the model that the schedule was made for. A sampler that differs by
        class needs the `label` of one class, or `labels` for one plan of several.

        >>> client.plan({"edm": {"T": 400}}, model="digits", solver="unipc", steps=6, grid="edm")
        Plan('edm', model='digits', solver='unipc', steps=6, nfe=6)
        """
        if labels is not None:
            options["labels"] = integers(labels, "labels").tolist()
        levels = {"model": model, "sigma_min": sigma_min, "sigma_max": sigma_max}
        file = self.call("PlanSampler", schedule=schedule, plan=plan, label=label, **levels, **options)
        warn(file.get("notes", []))
        by_formula = "vectors" in file or file["family"]["basis"] in FORMULAS
        return Plan.whole(file, None if by_formula else self.basis(schedule=file["schedule"]))

    def delete_plan(self, plan: str) -> None:
        self.call("DeletePlan", plan=plan)


def budget_fields(budget: int | str | None, learn: bool | None) -> dict[str, Any]:
    """The fields of a search for a budget, a number of evaluations or seconds as "90 s", and for `learn`."""
    fields: dict[str, Any] = {} if learn is None else {"learn": learn}
    if budget is None:
        return fields
    if budget == "minutes":
        raise BadRequestError("budget minutes is gone since 0.1: levels and coefficients are learned without it")
    if isinstance(budget, str) and (found := re.fullmatch(r"(\d+\.?\d*|\.\d+) ?s", budget)) and float(found[1]) > 0:
        return fields | {"seconds": float(found[1])}
    try:
        count = 0 if isinstance(budget, bool | str) else operator.index(budget)
    except TypeError:
        count = 0
    if count < 1:
        raise BadRequestError(
            f'budget must be a number of evaluations, at least 1, or seconds, such as "90 s", got {budget!r}'
        )
    return fields | {"budget": count}
