"""Every figure, on small made-up data: what is drawn is what was given."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from anisoflight import Client, LocalClient, figures
from anisoflight.figures.__main__ import main
from anisoflight.subspaces import Subspaces

T = 400.0
TIMES = np.linspace(0, T, 33)
SLOW, FAST = 1e-3 * (T / 1e-3) ** (TIMES / T), 1e-3 * (T / 1e-3) ** np.sqrt(TIMES / T)


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def frame(*paths: np.ndarray, label: int = -1) -> pd.DataFrame:
    return pd.concat([pd.DataFrame({"label": label, "subspace": j, "t": TIMES, "g": g}) for j, g in enumerate(paths)])


def labels_of(ax: Axes) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def ys(ax: Axes) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), float) for line in ax.get_lines()]


def test_variances() -> None:
    ax = figures.variances({"slow": frame(SLOW), "both": frame(FAST, SLOW)})
    assert ax.get_yscale() == "log"
    for drawn, g in zip(ys(ax), (SLOW, FAST, SLOW), strict=True):
        np.testing.assert_array_equal(drawn, g)
    assert [line.get_linestyle() for line in ax.get_lines()] == ["-", "-", "--"]
    np.testing.assert_allclose(np.asarray(ax.get_lines()[0].get_xdata(), float), TIMES / T)
    assert labels_of(ax) == ["slow", "both, $g_1$", "both, $g_2$"]
    assert "t / T" in ax.get_xlabel()


def test_variances_of_classes_and_of_bare_tables() -> None:
    ax = figures.variances(pd.concat([frame(SLOW, FAST, label=0), frame(FAST, SLOW, label=1)]), names=["cat"])
    assert labels_of(ax) == ["cat", "class 1"]
    assert len(ax.get_lines()) == 4
    colours = [line.get_color() for line in ax.get_lines()]
    assert colours[0] == colours[1] != colours[2]
    bare = figures.variances(pd.DataFrame({"t": TIMES, "g": SLOW}))
    assert labels_of(bare) == ["$g$"]


def test_the_axes_given_are_drawn_on() -> None:
    _, ax = pyplot.subplots()
    assert figures.variances(frame(SLOW), ax) is ax


def test_ratio() -> None:
    ax = figures.ratio(frame(FAST, SLOW))
    curve, one = ys(ax)
    np.testing.assert_allclose(curve, FAST / SLOW)
    assert set(one) == {1.0}
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    assert low < 1 < high
    over = figures.ratio(frame(FAST, SLOW), over="sigma")
    assert over.get_xscale() == "log"
    np.testing.assert_allclose(np.asarray(over.get_lines()[0].get_xdata(), float), (FAST * SLOW) ** 0.25)
    with pytest.raises(ValueError, match="two subspaces"):
        figures.ratio(frame(SLOW))
    with pytest.raises(ValueError, match="over must be 't' or 'sigma', got 'time'"):
        figures.ratio(frame(FAST, SLOW), over="time")


def patterns(figure: Figure) -> list[np.ndarray]:
    images = [child for ax in figure.axes for child in ax.get_children() if isinstance(child, AxesImage)]
    return [np.asarray(image.get_array()) for image in images]


def test_paper() -> None:
    """√(g₁g₂), g₁/g₂, and what classes have over their geometric mean; of two classes that swap their paths."""
    swapped = pd.concat([frame(SLOW, FAST, label=0), frame(FAST, SLOW, label=1)])
    mean, ratio, classes, means = figures.paper(swapped).axes
    np.testing.assert_allclose(ys(mean)[0], np.sqrt(SLOW * FAST))
    np.testing.assert_allclose(ys(ratio)[0], SLOW / FAST)
    np.testing.assert_allclose(ys(classes)[0], np.sqrt(SLOW / FAST))
    np.testing.assert_allclose(ys(means)[0], 1)
    assert len(figures.paper(frame(SLOW)).axes) == 1


def test_reverse(client: Client) -> None:
    """From the noise of the seed to the server's own sample of it, in the schedule's subspaces, each on its scale."""
    client.put_schedule("figures-two", frame(FAST, SLOW), basis="dct", k=4, replace=True)
    noise = np.random.default_rng(5).standard_normal((1, 1, 8, 8))
    options = {"labels": [3], "schedule": "figures-two", "steps": 4, "dtype": "float32", "progress": False}
    sample = client.sample("digits", latents=np.moveaxis(noise, 1, 3).astype(np.float32), **options).images[..., 0]
    figure = figures.reverse(client, "digits", "figures-two", label=3, steps=4, seed=5)
    drawn = np.reshape(patterns(figure), (3, 5, 8, 8))
    assert np.abs(drawn[0, -1] - sample[0] / max(np.abs(sample).max(), 1)).max() < 1e-4
    split = Subspaces({"basis": "dct", "k": 4}).split
    for j, (first, last) in enumerate(zip(split(noise), split(sample[:, None]), strict=True), 1):
        np.testing.assert_allclose(drawn[j, 0], first[0, 0] / np.abs(first).max(), atol=1e-4)
        np.testing.assert_allclose(drawn[j, -1], last[0, 0] / np.abs(last).max(), atol=2e-3)
    assert [ax.get_ylabel() for ax in figure.axes[::5]] == ["$x_t$", "$P_1x_t$", "$P_2x_t$", "noise variance  g(t)"]
    assert figure.axes[2].get_title() == "\n".join(
        f"{np.sqrt(g[16]):.3g}" for g in (FAST, SLOW)
    )  # the middle of [0, T]
    paths = figure.axes[-1].get_lines()
    np.testing.assert_allclose(ys(figure.axes[-1])[0][::16], FAST)
    assert [line.get_color() for line in paths] == [ax.yaxis.label.get_color() for ax in figure.axes[5:15:5]]


def test_reverse_of_one_path_is_seen_in_two_subspaces(client: LocalClient, tmp_path: Path) -> None:
    figure = figures.reverse(client, "digits", label=3, steps=2)
    assert len(patterns(figure)) == 3 * 3
    assert len(figure.axes[-1].get_lines()) == 1
    options = ["--reverse", "--label", "3", "--out", str(tmp_path / "reverse.png"), "--server", client.location]
    assert main(["digits", *options]) == 0
    height, width, _ = pyplot.imread(tmp_path / "reverse.png").shape
    assert width > 2 * height


def test_components() -> None:
    vectors = np.eye(16).reshape(16, 4, 4)
    figure = figures.components({0: -vectors[:3], 1: vectors[3:6]}, count=2, names=["cat", "dog"])
    drawn = patterns(figure)
    assert len(figure.axes) == len(drawn) == 4
    np.testing.assert_array_equal(drawn[0], vectors[0])  # the largest value is made positive
    np.testing.assert_array_equal(drawn[3], vectors[4])
    assert figure.axes[2].get_ylabel() == "dog"
    assert len(patterns(figures.components(vectors, count=5))) == 5


def test_two_subspaces_of_one_schedule_have_two_colours() -> None:
    for schedules in (frame(FAST, SLOW), {"learned": frame(FAST, SLOW)}):
        lines = figures.variances(schedules).get_lines()
        assert [line.get_color() for line in lines] == list(figures.COLOURS[:2])
        assert [line.get_linestyle() for line in lines] == ["-", "--"]
    many = figures.variances({"one": frame(FAST, SLOW), "other": frame(SLOW, FAST)}).get_lines()
    assert [line.get_color() for line in many] == [figures.COLOURS[i] for i in (0, 0, 1, 1)]
