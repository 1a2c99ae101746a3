"""Speed of the search for secrets: over the messages of the stories, and of the shared transcripts if there are any.

Run as `python -m tests.benchmarks.redaction [FILE...]`; with files, those are measured instead. The aim is 40 MB/s on
ordinary transcripts (XE5). `messages` are searched as `om observe` does; `lines` are those of the file, raw.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from omcli.base.errors import OmError
from omcli.memory.message import Message
from omcli.text.redaction import redact
from omcli.wiring.inputs import transcript_in
from tests.shared import TRANSCRIPTS

_STORIES = Path(__file__).parents[1] / "stories"
_SHARED = ("claude-code", "codex", "pi")
_AIM = 40.0
"""Megabytes of messages per second of processor time."""


def main(paths: Sequence[str]) -> int:
    """Print a line for each folder or file. Return 1 if the messages of any are searched too slowly."""
    inputs: dict[str, list[Path]] = {path: [Path(path)] for path in paths}
    if not inputs:
        inputs = {folder: sorted((TRANSCRIPTS / folder).rglob("*.jsonl")) for folder in _SHARED}
        inputs = {name: files for name, files in inputs.items() if files} or {"stories": list(_STORIES.iterdir())}
    print(f"{'':24}{'MB':>8}{'messages MB/s':>16}{'lines MB/s':>14}")
    slowest = _AIM
    for name, files in inputs.items():
        texts = [text for file in files for text in _texts(file)]
        lines = [line for file in files for line in file.read_text(encoding="utf-8", errors="replace").splitlines()]
        speed = _speed(texts)
        print(f"{name:24}{_megabytes(texts):8.1f}{speed:16.1f}{_speed(lines):14.1f}")
        slowest = min(slowest, speed)
    return int(slowest < _AIM)


def _texts(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            return [item.text for item in transcript_in(stream).items if isinstance(item, Message)]
    except OmError:
        return []


def _megabytes(texts: Sequence[str]) -> float:
    return sum(map(len, texts)) / 1e6


def _speed(texts: Sequence[str]) -> float:
    """Megabytes per second of processor time: the best of three."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        for text in texts:
            redact(text)
        taken.append(time.process_time() - start)
    return _megabytes(texts) / min(taken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
