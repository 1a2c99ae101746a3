"""The real clients, which take minutes and npm: `OM_TEST_CLIENTS=1 pytest -n0 tests/clients`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.clients.__main__ import TRAVEL
from tests.clients.programs import PROGRAMS
from tests.clients.scenario import Step, show, show_travel

OM = Path(sys.executable).with_name("om")
pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("OM_TEST_CLIENTS"), reason="OM_TEST_CLIENTS is not set: real clients from npm"
    ),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on PATH"),
]


def failed(steps: list[Step]) -> list[Step]:
    assert steps
    return [step for step in steps if not step.is_shown]


@pytest.mark.parametrize("client", PROGRAMS)
def test_memory_arrives_and_uninstall_leaves_nothing(client: str, tmp_path: Path) -> None:
    """S0.35, S2.42."""
    assert not failed(list(show(client, tmp_path / client, OM)))


def test_memory_travels_between_clients_in_one_folder(tmp_path: Path) -> None:
    assert not failed(list(show_travel(TRAVEL, tmp_path / "together", OM)))
