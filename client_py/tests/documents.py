"""Reads the documents of the repository: their blocks of code, the commands in these, and their links."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "client_py/*.md", "docs/**/*.md", "bench/**/*.md", "studies/**/*.md")
    for path in ROOT.glob(pattern)
)
LANGUAGES = {"python", "sh", "json", "go", "text"}
"""text is what no program reads: drawings, formulas, and output that a document quotes."""


@dataclass(frozen=True)
class Block:
    document: str
    line: int
    language: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"


def blocks(document: str) -> Iterator[Block]:
    """The fenced blocks of a document; a fence that is never closed is an error."""
    language, start, held = None, 0, []
    for number, line in enumerate((ROOT / document).read_text(encoding="utf-8").splitlines(), 1):
        if not line.lstrip().startswith("```"):
            held.append(line)
        elif language is None:
            language, start, held = line.strip().removeprefix("```"), number, []
        else:
            assert line.strip() == "```", f"{document}:{number}: a fence inside of a block"
            yield Block(document, start, language, "\n".join(held) + "\n")
            language = None
    assert language is None, f"{document}:{start}: the block has no end"


def indented(document: str) -> Iterator[Block]:
    """The blocks that are set off by four spaces."""
    text = (ROOT / document).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    for found in re.finditer(r"(?<=\n\n)(?:    .*\n)+", text):
        yield Block(document, text.count("\n", 0, found.start()) + 1, "", re.sub(r"^    ", "", found[0], flags=re.M))


def commands(block: Block) -> Iterator[list[str]]:
    """The commands of a block as words, without comments; `cd X && Y` is two."""
    waiting = ""
    for line in block.code.splitlines():
        waiting += line.removesuffix("\\") if line.endswith("\\") else line + "\n"
        if line.endswith("\\"):
            continue
        try:
            lexer = shlex.shlex(waiting, posix=True, punctuation_chars="&>|;")
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:  # a quotation goes on in the next line
            continue
        waiting = ""
        command: list[str] = []
        for word in [*words, "&&"]:
            if word != "&&":
                command.append(word)
            elif command:
                yield command
                command = []
    assert not waiting.strip(), f"{block.place}: the last command has no end"


def anchors(document: Path) -> set[str]:
    """What links can point at in a document: its headings, as GitHub spells them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", found) for found in re.findall(r"^#+ (.*)$", text, re.M))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(text: str) -> Iterator[str]:
    """The targets of a document's links and pictures."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)
    yield from re.findall(r"\]\(([^()\s]+)\)", text)
