"""The advice in warnings and errors, followed: what it says is done, and then there is no error and no such warning."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import wire

import anisoflight
from anisoflight import AnisoflightError, Client

BITS = np.random.default_rng(0).integers(0, 2, (6, 8, 8, 1), np.uint8)
DEEP = np.random.default_rng(1).integers(0, 2**16, (6, 8, 8, 1), np.uint16)
TINY = {"batch": 8, "knots": 8, "c": 1.0, "T": 400, "init": "edm"}


class Case(NamedTuple):
    """What is done, a part of the advice that comes, and what the advice says to do."""

    wrong: Callable[[Client], Any]
    advice: str
    followed: Callable[[Client, str], Any]


def put(client: Client, images: Any, **options: Any) -> np.ndarray:
    client.put_dataset("advice", images, replace=True, **options)
    return client.dataset("advice").images


def stored(client: Client, images: Any, expected: np.ndarray, **options: Any) -> None:
    np.testing.assert_array_equal(put(client, images, **options), expected)


def run(client: Client, stage: str = "isotropic", steps: int = 0, **settings: Any) -> Any:
    """A run from the model, some steps of it, and the model that it saves."""
    made = client.create_run("advice", stage, "blocks", **{"model": "digits", **TINY, **settings}, replace=True)
    if steps:
        made.step(steps, progress=False)
        made.save("advised", replace=True)
    return made


def pretrain(client: Client, steps: int = 0, **settings: Any) -> Any:
    network = {**wire.NETWORK, **settings.pop("network", {})}
    settings = {"batch": 8, "kimg": 0.8, "network": network, **settings}
    made = client.create_run("advice", "pretrain", "blocks", **settings, replace=True)
    if steps:
        made.step(steps, progress=False)
        made.save("advised", replace=True)
    return made


def cancelled(client: Client) -> Any:
    made = run(client, steps=1)
    made.cancel()
    return made


def number(pattern: str, said: str) -> float:
    found = re.search(pattern, said)
    assert found is not None, said
    return float(found[1])


def geodesic(client: Client, **options: Any) -> None:
    options = {"model": "digits", "dataset": "blocks", "T": 400, "points": 6, "samples": 4, **options}
    client.make_schedule("advice-geo", progress=False, replace=True, **options)


def sample(client: Client, **options: Any) -> Any:
    return client.sample("digits", n=2, progress=False, **{"steps": 3, **options})


CASES = {
    # Images and labels
    "bits as bytes": Case(
        lambda client: put(client, BITS),
        r"put 255 \* images",
        lambda client, _: stored(client, 255 * BITS, np.where(BITS == 1, 255, 0)),
    ),
    "bits that are meant so": Case(
        lambda client: put(client, BITS),
        "check_range=False",
        lambda client, _: stored(client, BITS, BITS, check_range=False),
    ),
    "floats in [0, 1]": Case(
        lambda client: put(client, BITS.astype(np.float32)),
        r"put 2 \* images - 1",
        lambda client, _: stored(client, 2 * BITS.astype(np.float32) - 1, np.where(BITS == 1, 1.0, -1.0)),
    ),
    "bytes as int64": Case(
        lambda client: put(client, 200 * BITS.astype(np.int64)),
        r"put images.astype\(np.uint8\)",
        lambda client, _: stored(client, 200 * BITS, 200 * BITS),
    ),
    "uint16": Case(
        lambda client: put(client, DEEP),
        r"put images / 32767.5 - 1",
        lambda client, _: stored(client, DEEP / 32767.5 - 1, (DEEP / 32767.5 - 1).astype(np.float32)),
    ),
    "a bool": Case(
        lambda client: put(client, BITS == 1),
        r"put images \* np.uint8\(255\)",
        lambda client, _: stored(client, (BITS == 1) * np.uint8(255), np.where(BITS == 1, 255, 0)),
    ),
    "a table with another name": Case(
        lambda client: put(client, {"photo": 200 * BITS}),
        "rename one",
        lambda client, _: stored(client, {"image": 200 * BITS}, 200 * BITS),
    ),
    "a column of it alone": Case(
        lambda client: put(client, pd.DataFrame({"photo": list(200 * BITS)})),
        "pass that column alone",
        lambda client, _: stored(client, pd.DataFrame({"photo": list(200 * BITS)})["photo"], 200 * BITS),
    ),
    # Names
    "a data set's name": Case(
        lambda client: (put(client, 200 * BITS), client.put_dataset("advice", 200 * BITS)),
        "set replace",
        lambda client, _: put(client, 200 * BITS),
    ),
    "a saved model's name": Case(
        lambda client: (run(client, steps=1), client.run("advice").save("advised")),
        "set replace",
        lambda client, _: client.run("advice").save("advised", replace=True),
    ),
    # Runs
    "a schedule that cannot move": Case(
        lambda client: run(client, kimg=0.8, schedule_lr=3e-4),
        "schedule_lr [0-9.e-]+ or more",
        lambda client, said: run(client, kimg=0.8, schedule_lr=number("schedule_lr ([0-9.e-]+) or more", said)),
    ),
    "the same, trained longer": Case(
        lambda client: run(client, kimg=0.8, schedule_lr=3e-4),
        "give a longer kimg",
        lambda client, _: run(client, kimg=80, schedule_lr=3e-4),
    ),
    "two paths for a network that is told one level": Case(
        lambda client: run(client, "anisotropic", ratio_embedding=False),
        "leave ratio_embedding out",
        lambda client, _: run(client, "anisotropic", steps=1, ema_rampup=0.05, kimg=0.008),
    ),
    "the same, frozen": Case(
        lambda client: run(client, "anisotropic", train_network=False),
        "leave train_network out, or take the stage",
        lambda client, _: run(client, "anisotropic"),
    ),
    "ratios of one subspace": Case(
        lambda client: pretrain(client, ratio_embedding=True),
        "give a family with two",
        lambda client, _: pretrain(client, ratio_embedding=True, family={"basis": "dct"}),
    ),
    "two subspaces in the stage isotropic": Case(
        lambda client: run(client, family={"basis": "dct"}),
        "use the stage anisotropic",
        lambda client, _: run(client, "anisotropic", family={"basis": "dct"}),
    ),
    "a run that is stopped early": Case(
        lambda client: pretrain(client, steps=4, kimg=1200),
        "create it with kimg",
        lambda client, said: pretrain(client, steps=4, kimg=number("create it with kimg ([0-9.e-]+)", said)),
    ),
    "the same, trained on": Case(
        lambda client: pretrain(client, steps=4, kimg=0.08),
        "train it to its end",
        lambda client, _: (client.run("advice").step(6, progress=False), client.run("advice").save("advised", True)),
    ),
    "an average that is the start": Case(
        lambda client: run(client, steps=2, kimg=0.016, ema_halflife_kimg=500),
        "give a shorter ema_halflife_kimg",
        lambda client, _: run(client, steps=2, kimg=0.016, ema_halflife_kimg=0.004),
    ),
    "the same, ramped up": Case(
        lambda client: run(client, steps=2, kimg=0.016, ema_halflife_kimg=500),
        "ema_rampup 0.05",
        lambda client, _: run(client, steps=2, kimg=0.016, ema_rampup=0.05),
    ),
    "a network that knows no classes": Case(
        lambda client: pretrain(client, network={"label_dim": 0}),
        "give label_dim [0-9]+",
        lambda client, said: pretrain(client, network={"label_dim": int(number("give label_dim ([0-9]+)", said))}),
    ),
    "channels that do not divide": Case(
        lambda client: pretrain(client, network={"model_channels": 30}),
        "choose multiples of 4",
        lambda client, _: pretrain(client, network={"model_channels": 32}),
    ),
    "a run that has diverged": Case(
        lambda client: pretrain(client, steps=40, lr=1e30),
        "begin again with lower learning rates",
        lambda client, _: pretrain(client, steps=40, lr=1e-3),
    ),
    "a run that has seen as much": Case(
        lambda client: pretrain(client, steps=2).start(0.016),
        "ask for more than that",
        lambda client, _: (client.run("advice").start(0.024), client.run("advice").wait(progress=False)),
    ),
    "a run that is over": Case(
        lambda client: cancelled(client).step(1, progress=False),
        "Create a new run; SaveModel keeps what this one has learned",
        lambda client, _: (client.run("advice").save("advised", True), run(client)),
    ),
    "a zero for a default": Case(
        lambda client: run(client, kimg=0), "Leave it out for its default", lambda client, _: run(client)
    ),
    "images that are all alike": Case(
        lambda client: (
            put(client, np.full((8, 8, 8, 1), 7, np.uint8)),
            client.create_run("advice", "isotropic", "advice", model="digits", T=400, replace=True),
        ),
        "c must be given",
        lambda client, _: client.create_run("advice", "isotropic", "advice", model="digits", T=400, c=1, replace=True),
    ),
    "one image to a network": Case(
        lambda client: client.denoise("digits", np.zeros((8, 8, 1)), sigma=1.0),
        r"put \[x\] for one image",
        lambda client, _: client.denoise("digits", [np.zeros((8, 8, 1))], sigma=1.0),
    ),
    "a run at work": Case(
        lambda client: (background(client), client.run("advice").step(1, progress=False)),
        "PauseRun it first",
        lambda client, _: (client.run("advice").pause(), client.run("advice").step(1, progress=False)),
    ),
    "a run at work that is to go": Case(
        lambda client: (background(client), client.run("advice").delete()),
        "CancelRun it first",
        lambda client, _: (client.run("advice").cancel(), client.run("advice").delete()),
    ),
    "a network and a model": Case(
        lambda client: pretrain(client, model="digits"), "network must be left out", lambda client, _: run(client)
    ),
    "a noise of ratios for a frozen network": Case(
        lambda client: run(client, train_network=False, p_std_subspace=0.1),
        "p_std_subspace must be 0",
        lambda client, _: run(client, train_network=False, p_std_subspace=0),
    ),
    "a mixture that is trained": Case(
        lambda client: mixture(client, "isotropic"),
        "train_network must be false for a mixture",
        lambda client, _: mixture(client, "isotropic", train_network=False),
    ),
    "a model that knows no classes": Case(
        lambda client: (
            pretrain(client, steps=1, network={"label_dim": 0}),
            client.create_run("advice", "isotropic", "blocks", model="advised", replace=True, **TINY),
        ),
        "to use them, pretrain a new network with label_dim 10",
        lambda client, _: silent(lambda: pretrain(client, network={"label_dim": 10})),
    ),
    "images of what is no mixture": Case(
        lambda client: client.draw_dataset("advice", "digits", 4, replace=True, progress=False),
        "MakeModel makes mixtures",
        lambda client, _: (
            client.make_mixture("advice-m", dataset="blocks", progress=False),
            client.draw_dataset("advice", "advice-m", 4, replace=True, progress=False),
        ),
    ),
    "a mixture of nothing": Case(
        lambda client: client.make_mixture("advice-m", progress=False),
        "Give dataset",
        lambda client, _: client.make_mixture("advice-m", dataset="blocks", progress=False),
    ),
    # Schedules and samplers
    "churn of a solver that remembers": Case(
        lambda client: sample(client, solver="ab", S_churn=10),
        "choose euler or heun",
        lambda client, _: sample(client, solver="heun", S_churn=10),
    ),
    "an order that is lowered": Case(
        lambda client: sample(client, steps=None, nfe=5, solver="unipc"),
        "give order 3",
        lambda client, _: sample(client, steps=None, nfe=5, solver="unipc", order=3),
    ),
    "a start that there is none of": Case(
        lambda client: sample(client, start="matched"),
        "Make one with MakeSchedule of kind start",
        lambda client, _: (
            client.make_schedule(
                "advice-start", "start", dataset="blocks", model="digits", replace=True, progress=False
            ),
            sample(client, start="matched", schedule="advice-start"),
        ),
    ),
    "steps that coincide": Case(
        lambda client: sample(client, steps=400, grid={"edm": {"sigma_min": 1 - 1e-14, "sigma_max": 1}}),
        "take fewer steps or move sigma_min",
        lambda client, _: sample(client, steps=40, grid={"edm": {"sigma_min": 0.5, "sigma_max": 1}}),
    ),
    "a schedule beyond the network": Case(
        lambda client: client.sample(bounded(client), n=1, steps=2, schedule={"edm": {"T": 1e5}}),
        "Make one with T = [0-9.e+]+ and g0 = [0-9.e-]+",
        lambda client, said: (
            client.make_schedule("advice-edm", "edm", replace=True, progress=False, **ends(said)),
            client.sample("advised", n=1, steps=2, schedule="advice-edm"),
        ),
    ),
    "a network beyond the schedule": Case(
        lambda client: client.sample(bounded(client), n=1, steps=2, schedule="edm"),
        "schedule {.*} begins there",
        lambda client, said: client.sample(
            "advised", n=1, steps=2, schedule=json.loads(said[said.index("{") : said.rindex("}") + 1])
        ),
    ),
    "evaluations that no steps take": Case(
        lambda client: sample(client, steps=None, nfe=8, second_point="endpoint"),
        "ask for [0-9]+",
        lambda client, said: sample(
            client, steps=None, nfe=int(number("ask for ([0-9]+)", said)), second_point="endpoint"
        ),
    ),
    "an interval without guidance": Case(
        lambda client: sample(client, guidance_interval=[0.2, 3]),
        "Give guidance",
        lambda client, _: sample(client, guidance_interval=[0.2, 3], guidance=2),
    ),
    "guidance without classes": Case(
        lambda client: (
            pretrain(client, steps=1, network={"label_dim": 0}),
            client.sample("advised", n=1, steps=2, guidance=2),
        ),
        "Name another model without classes as guide",
        lambda client, _: (
            client.run("advice").save("advised-guide", replace=True),
            client.sample("advised", n=1, steps=2, guidance=2, guide="advised-guide"),
        ),
    ),
    "a class that is not there": Case(
        lambda client: client.sample("digits", labels=[10], steps=2),
        "The classes are 0 … 9",
        lambda client, _: client.sample("digits", labels=[9], steps=2),
    ),
    "a solver's name": Case(
        lambda client: sample(client, solver="huen"),
        'did you mean "heun"',
        lambda client, _: sample(client, solver="heun"),
    ),
    "a basis of images": Case(
        lambda client: client.basis("pca"),
        "MakeBasis stores one under a name",
        lambda client, _: (
            client.make_basis("advice-b", "pca", "blocks", k=4, replace=True, progress=False),
            client.basis("advice-b"),
        ),
    ),
    "a closed client": Case(
        lambda client: closed(client).models(),
        "connect again",
        lambda client, _: anisoflight.connect(client.location).models(),
    ),
}


def background(client: Client) -> None:
    pretrain(client, kimg=1000).start()


def mixture(client: Client, stage: str, **settings: Any) -> None:
    client.make_mixture("advice-m", dataset="blocks", replace=True, progress=False)
    client.create_run("advice", stage, "blocks", model="advice-m", replace=True, **{**TINY, **settings})


def silent(action: Callable[[], Any]) -> None:
    assert said_by(action) == []


def bounded(client: Client) -> str:
    """A network of noise levels up to 83.7…, whose square has no end."""
    pretrain(client, steps=1, network={"sigma_max": 83.71234567891, "sigma_min": 0.0123456789})
    return "advised"


def ends(said: str) -> dict[str, float]:
    return {"T": number("T = ([0-9.e+]+) and", said), "g0": number("g0 = ([0-9.e-]+),", said)}


def closed(client: Client) -> Client:
    other = anisoflight.connect(client.location)
    other.close()
    return other


@pytest.fixture(autouse=True)
def tidy(client: Client) -> Iterator[None]:
    """What a case leaves is deleted."""
    yield
    if "advice" in client.runs().index:
        client.run("advice").cancel()
        client.run("advice").delete()
    for kind in ("model", "schedule", "basis", "dataset"):
        listed = {"basis": client.bases}.get(kind) or getattr(client, kind + "s")
        for name in listed().index:
            if name.startswith("advi"):
                getattr(client, f"delete_{kind}")(name)


def said_by(action: Callable[[], Any]) -> list[str]:
    """The warnings and the error of an action."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            action()
        except (AnisoflightError, ValueError) as error:
            return [*(str(each.message) for each in caught), str(error)]
    return [str(each.message) for each in caught]


@pytest.mark.parametrize("name", CASES)
def test_advice_can_be_followed(client: Client, name: str) -> None:
    case = CASES[name]
    message = [text for text in said_by(lambda: case.wrong(client)) if re.search(case.advice, text)]
    assert message, f"no advice {case.advice!r}"
    with warnings.catch_warnings(record=True) as after:
        warnings.simplefilter("always")
        case.followed(client, message[0])
    assert not [str(each.message) for each in after if re.search(case.advice, str(each.message))]
