"""Stores whose messages wait: taken in, and observed by nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import Om
from tests.e2e.transcripts import Talk


def keep(om: Om, talk: Talk) -> Path:
    """Takes a transcript in; its messages wait."""
    transcript = om.write(f"{talk.session[:8]}.jsonl", talk.text())
    om("observe", "--later", transcript)
    return transcript


def waiting(om: Om, *arguments: str) -> dict[str, Any]:
    """What `om pending --json` prints."""
    return om("pending", "--json", *arguments).document


def answer(shown: dict[str, Any], *observations: dict[str, Any], **more: Any) -> str:
    """What an agent hands in, for what it was shown."""
    return json.dumps({"token": shown["token"], "observations": list(observations), **more})


def row(text: str, *sources: str, **more: Any) -> dict[str, Any]:
    """An observation as an agent writes it."""
    return {"text": text, "priority": "medium", "kind": "fact", "sources": list(sources), **more}
