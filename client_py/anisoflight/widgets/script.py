"""The JavaScript of the widgets, one module each."""

from pathlib import Path

_FOLDER = Path(__file__).parent


def script(name: str) -> str:
    """The module of a widget, with the common part first: a front end loads one text."""
    return "\n".join((_FOLDER / f"{part}.js").read_text(encoding="utf-8") for part in ("common", name))
