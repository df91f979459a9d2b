"""Widgets for notebooks: samples at every step, the loss of a training run.

    from anisoflight.widgets import LossCurve, Previews

    Previews(client.sample("digits", n=16, steps=18, every=1))
    LossCurve(run)

They are anywidgets, for JupyterLab, Notebook, VS Code, Colab and marimo; the extra `notebook` installs what they need.
"""

try:
    import anywidget as _anywidget  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "anisoflight.widgets needs anywidget: pip install 'anisoflight[notebook]'", name="anywidget"
    ) from error

from ..errors import gone
from .loss import LossCurve
from .preview import Previews

__getattr__ = gone(
    "widgets",
    {"ScheduleEditor": 'put_schedule(name, knots) stores edited knots, and client.schedule("edm").knots() has some'},
)

del gone
__all__ = ["LossCurve", "Previews"]
