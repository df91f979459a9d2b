"""A client in other processes: refused at once where they are forks, taken along where they are spawned."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import anisoflight
from anisoflight import Client, LocalClient
from anisoflight.operations.training import Run

FORK = """
import os, sys
import anisoflight

client = anisoflight.connect({location!r})
{before}
child = os.fork()
if child == 0:
    for words in {inside!r}:
        try:
            exec(words)
            print("works")
        except anisoflight.ForkedError as error:
            print(error.code, "spawn" in error.message)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
print("digits" in client.models().index)
"""
STREAM = """
run = client.create_run(f"forks-{{os.getpid()}}", "pretrain", "blocks", model="digits", batch=8)
rows = iter(client.stream("TrainStep", {{"run": run.name, "steps": 10**6}}))
next(rows)
"""
CALLS = [
    "client.info()",
    "client.sample('digits', n=1, steps=2)",
    "client.put_dataset('no', [[[[0.0]]]])",
    "client.denoise('digits', [[[[0.0]]]], sigma=1)",
]


@pytest.mark.parametrize(
    ("before", "inside", "says"),
    [
        ("client.info()", CALLS, ["FORKED True"] * len(CALLS)),
        ("", ["anisoflight.connect(client.location).info()"], ["FORKED True"]),
        (STREAM, ["list(rows)"], ["FORKED True"]),
        (STREAM, ["del rows"], ["works"]),
        ("client.info()", ["client.close()"], ["works"]),
        ("client.info()", ["del client"], ["works"]),
    ],
)
def test_a_fork_of_a_client_neither_hangs_nor_harms_it(
    client: LocalClient, before: str, inside: list[str], says: list[str]
) -> None:
    script = FORK.format(location=client.location, before=before.format(), inside=inside)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [*says, "True"], done.stderr


def test_a_fork_before_the_first_client_has_one_of_its_own(client: LocalClient) -> None:
    script = f"""
import os
import anisoflight
child = os.fork()
with anisoflight.connect({client.location!r}) as client:
    os.write(1, client.info()["device"]["name"].encode() + b"\\n")  # at once, unlike print
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == 2 * [client.info()["device"]["name"]], done.stderr


def test_pools_of_processes(client: LocalClient, tmp_path: Path) -> None:
    """The error comes through a pool of forks, and a client through one of spawned processes."""
    script = tmp_path / "pools.py"
    script.write_text(f"""
import multiprocessing
import anisoflight

def seeds(client):
    return client.sample("digits", n=2, seed=7, steps=2).seeds.tolist()

if __name__ == "__main__":
    client = anisoflight.connect({client.location!r})
    client.info()
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            try:
                print(pool.map(seeds, [client]))
            except anisoflight.ForkedError as error:
                print(error.code)
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["FORKED", "[[7, 8]]"], done.stderr


def test_a_pickled_client_is_another_to_the_same_server(client: LocalClient) -> None:
    """With what it was made with; closing it ends neither the server nor its client."""
    for made in (pickle.loads(pickle.dumps(client)), copy.copy(client)):
        assert type(made) is Client
        assert made.location == client.location
        with made:
            assert "digits" in made.models().index
    assert "digits" in client.models().index
    client.create_run("forks", "pretrain", "blocks", model="digits", batch=8)
    with Client(client.location, timeout=0.25, retry=0) as short:
        made = pickle.loads(pickle.dumps(short))
        with made, pytest.raises(anisoflight.DeadlineError):
            Run(made, "forks").step(10**6, progress=False)
    client.run("forks").cancel()
    client.run("forks").delete()


def test_what_a_client_made_is_pickled_with_it(client: LocalClient) -> None:
    schedule = pickle.loads(pickle.dumps(client.schedule("edm")))
    assert schedule.evaluate(points=3).equals(client.schedule("edm").evaluate(points=3))
    run = pickle.loads(pickle.dumps(client.run("for-model")))
    assert run.info["parameters"] == client.run("for-model").info["parameters"]
    samples = client.sample("digits", n=2, steps=2)
    assert np.array_equal(pickle.loads(pickle.dumps(samples)).images, samples.images)
    plan = client.plan("edm", model="digits", steps=3)
    assert pickle.loads(pickle.dumps(plan)).file == plan.file
    for made in (schedule, run):
        made._client.close()
