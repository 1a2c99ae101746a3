"""Judging the answers of hooks."""

from __future__ import annotations

from omcli.clients import CLIENTS
from omcli.clients.entries import hook_entries
from omcli.clients.events import start_event
from omcli.doctor.clients import HookAnswer


def test_an_answer_is_late_if_the_client_would_have_ended_the_hook() -> None:
    assert not HookAnswer(ms=5000).is_late
    assert HookAnswer(ms=5001).is_late


def test_every_client_waits_for_five_seconds_at_the_start_of_a_session() -> None:
    for name in CLIENTS:
        entry = hook_entries(name, "om")[start_event(name)][0]
        (hook,) = entry.get("hooks", [entry])
        assert hook["timeout"] in {5, 5_000}
