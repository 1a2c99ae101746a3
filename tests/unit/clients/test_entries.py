"""Entries of ours among those of others, in settings of any layout."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.clients.entries import entries, hook_entries, with_entries, without_entries
from omcli.clients.json_edit import parse
from tests.unit.clients.test_json_edit import comments, laid_out

_COMMAND = "'/opt/my tools/om' hook codex"
_WANTED = {event: hook_entries("codex", _COMMAND)[event] for event in ("Stop", "SessionStart", "SessionEnd")}
_OLD = {event: hook_entries("codex", "/old/om hook codex")[event] for event in ("Stop", "PreCompact")}


@given(laid_out(odd=False))
def test_what_is_installed_can_be_removed_byte_for_byte(text: str) -> None:
    """Even without the backup of the file."""
    changed = with_entries(text, _WANTED, {})
    assert [event for event, _ in entries(changed)] != []
    assert len(entries(changed)) == len(_WANTED)
    assert with_entries(changed, _WANTED, {}) == changed, "a second time, nothing is changed"
    assert without_entries(changed, parse(text).value, {}) == text


@given(laid_out(odd=True))
def test_entries_and_comments_of_others_stay_whatever_the_layout(text: str) -> None:
    """Also if an older form of ours is replaced, and of several copies only one is kept."""
    twice = with_entries(with_entries(text, _OLD, {}).replace("/old/om", "/older/om"), {}, {})
    changed = with_entries(with_entries(twice, _OLD, {}), _WANTED, {})
    assert sorted(entries(changed)) == sorted((event, "/opt/my tools/om hook codex") for event in _WANTED)
    removed = without_entries(changed, parse(text).value, {})
    assert parse(removed).value == parse(text).value
    assert comments(removed) == comments(text)


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40))
def test_a_command_with_any_path_is_recognised_as_ours(folder: str) -> None:
    command = f"{shlex.quote(f'/{folder}/om')} hook codex"
    text = with_entries("{}", hook_entries("codex", command), {})
    assert [event for event, _ in entries(text)] == list(hook_entries("codex", command))


@pytest.mark.parametrize("word", ["-a", "A=b", "5", "timeout", "om", "omcli", "hook", "-m"])
def test_hostile_commands_are_read_in_linear_time(word: str) -> None:
    """The words of a command are not limited if they are a list."""
    entry = {"command": word, "args": [word] * 20_000}
    assert entries(json.dumps({"hooks": {"Stop": [{"hooks": [entry]}]}})) == ()
