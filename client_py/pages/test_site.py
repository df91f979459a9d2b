"""What `make docs` promises of the site, on one that is built here."""

import re
from pathlib import Path

import pytest

from pages.__main__ import build, lay_out


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    stage = tmp_path / "stage/documents"
    lay_out(stage)
    return stage


def test_examples_are_code(stage: Path, tmp_path: Path) -> None:
    """Those of the docstrings stand in blocks of code, all of them."""
    done = build(stage, tmp_path / "site", capture=True)
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site/reference/python").glob("*.html"):
        text = re.sub(r"(?s)<pre>.*?</pre>", "", page.read_text(encoding="utf-8"))
        assert "&gt;&gt;&gt;" not in text, page.name
    client = (tmp_path / "site/reference/python/client.html").read_text(encoding="utf-8")
    blocks = [re.sub(r"<[^>]*>", "", block) for block in re.findall(r"(?s)<pre>.*?</pre>", client)]
    assert '&gt;&gt;&gt; "digits" in client.models().index\nTrue\n' in blocks


def test_what_leads_nowhere_fails(stage: Path, tmp_path: Path) -> None:
    flaws = {
        "README.md": "[a page](docs/nowhere.md)",
        "CHANGELOG.md": "[a heading](docs/method.md#nowhere)",
        "client_py/README.md": "a row [class][nobody]",
        "docs/unlisted.md": "A page in no menu.",
    }
    for page, text in flaws.items():
        with (stage / page).open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
    done = build(stage, tmp_path / "site", capture=True)
    assert done.returncode != 0
    assert f"Aborted with {len(flaws)} warnings" in done.stdout
    for message in ("'docs/nowhere.md'", "'#nowhere'", "'nobody'", "docs/unlisted.md"):
        assert message in done.stderr
