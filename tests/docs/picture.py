"""Draw the README's picture of a terminal, with rich, from what `om` really prints.

python -m tests.docs.picture    write .github/terminal.svg
"""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / ".github" / "terminal.svg"
SHOWN = ("om log --last 6", "om context --working-memory --budget 400")
_COLUMNS = 110
_HANDLE = re.compile(r"(?m)^((?:\x1b\[[0-9;]*m)*)[0-9a-f]{8}(?= \[)")
_ONLINE_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def session() -> str:
    """Return the commands with their coloured output on the sample session.

    Handles are new in every store: in the picture they are numbered.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "sample.db")
        _om(store, "observe", "-q", "tests/stories/claude_code_refactor.jsonl")
        printed = [f"\x1b[32m$\x1b[0m {each}\n{_om(store, *each.split()[1:], '-q')}" for each in SHOWN]
    numbers = iter(range(0x4E7D0B20, 0x7FFFFFFF, 0x01F3A5C7))
    return _HANDLE.sub(lambda found: f"{found[1]}{next(numbers):08x}", "\n".join(printed))


def draw(printed: str) -> str:
    """Return an SVG of a terminal with that text; fonts come from the reader's machine."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(printed), soft_wrap=False)
    return _ONLINE_FONT.sub("", console.export_svg(title="om", unique_id="om"))


def words(svg: str) -> list[str]:
    """Return the words of a picture, in their order."""
    rows = re.findall(r"<text[^>]*clip-path[^>]*>(.*?)</text>", svg)
    return html.unescape(" ".join(rows)).replace("\xa0", " ").split()


def _om(store: str, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OM_", "XDG_"))}
    environment |= {"OM_DB": store, "HOME": str(Path(store).parent), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "omcli", *arguments, *(() if arguments[0] == "observe" else ("--color", "always"))]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    PICTURE.write_text(draw(session()), encoding="utf-8")
