"""A real model, small enough to be run anywhere: whatever it answers, nothing breaks and nothing false is stored.

It runs if `OM_TEST_TINY_MODEL` names an interpreter that has a server and a model (`tests/tiny_model.py` says which) or
is `1` and this one has them. It does not test how well such a model observes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import tiny_model
from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, connected, number_of

_NAMED = os.environ.get("OM_TEST_TINY_MODEL", "")
_INTERPRETER = sys.executable if _NAMED == "1" else _NAMED
_STORY = Path(__file__).parents[1] / "stories" / "codex_release.jsonl"
_WAYS = {
    "OM_PROVIDER_TIMEOUT": "600",
    "OM_OBSERVER_MAX_OUTPUT": "400",  # such a model does not know when to stop
    "OM_REFLECTOR_MAX_OUTPUT": "400",
    "OM_OBSERVE_BATCH_TOKENS": "500",
}
_PATIENCE = 3_600
"""Seconds a run may take."""
_UNAVAILABLE = 69
"""What a run ends with whose model could not be used."""

pytestmark = pytest.mark.skipif(not _INTERPRETER, reason="OM_TEST_TINY_MODEL names no interpreter with a tiny model")


@pytest.fixture(scope="module", params=["json_schema", "prompt"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Yield the URL of a server for the model, which enforces schemas or ignores them, and the output mode that works
    there.
    """
    command = [_INTERPRETER, tiny_model.__file__, *(["--unstructured"] if request.param == "prompt" else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        url = server.stdout.readline().strip()
        assert url, "the server did not start"
        yield url, request.param
        server.stdin.close()


def test_a_tiny_model_observes_and_reflects_and_nothing_breaks(om: Om, served: tuple[str, str]) -> None:
    """F33, F34, F37, F38, F83: cut off, in loops, no JSON; either it is used, or a run says so and nothing is lost."""
    base_url, rung = served
    model = ("openai", "--base-url", base_url, "--model", "smollm2")
    observed = om.process("observe", "--observer", *model, _STORY, env=_WAYS, code=None, seconds=_PATIENCE)
    assert observed.code in (0, _UNAVAILABLE), observed.stderr
    pending = om("status", "--json").document["pending"]
    assert (pending == 0) == (observed.code == 0)
    om("observe", "--observer", "rules", _STORY)
    assert_covered_once(om.place)
    rows = om("log", "--jsonl", "--all").lines
    assert all(row["message_ids"] and row["text"] == row["text"].strip() for row in rows)
    assert calls(om)["observe"] > 0

    [session] = om("sessions", "--jsonl").lines
    reflected = om.process(
        "reflect", "--reflector", *model, "--session", session["id"], env=_WAYS, code=None, seconds=_PATIENCE
    )
    assert reflected.code in (0, _UNAVAILABLE), reflected.stderr
    assert calls(om)["reflect"] > 0
    assert om("context", "--session", session["id"], "--budget", "2000").stdout.startswith("<om-memory")
    assert om("usage", "--json").document["total"]["calls"] == calls(om).total()
    assert number_of(om.place, "leases") == 0
    assert rungs(om) <= {rung}
    print(f"\n{rung}: observe {observed.code}, reflect {reflected.code}, {pending} left for the rules")
    print(Counter(row["source"] for row in rows), observed.stderr, reflected.stderr, om("usage").stdout, sep="\n")


def calls(om: Om) -> Counter[str]:
    """Calls by what they were for."""
    with connected(om.place) as connection:
        return Counter(lane for (lane,) in connection.execute("SELECT lane FROM calls"))


def rungs(om: Om) -> set[Any]:
    """How structure was asked for, in the end."""
    with connected(om.place) as connection:
        return {rung for (rung,) in connection.execute("SELECT rung FROM rungs")}
