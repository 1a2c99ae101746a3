"""Kinds of secrets that redaction is measured by, and texts without any."""

from __future__ import annotations

import re

import pytest

from omcli.text.redaction import redact
from tests.unit.text.secret_kinds import HARMLESS, KINDS, Kind


def _is_caught(kind: Kind) -> bool:
    """True if nothing of the secret is left: of a private key, none of its lines."""
    parts = re.findall("[A-Za-z0-9+/=]{24,}", kind.secret) if "\n" in kind.secret else [kind.secret]
    redacted = redact(kind.text).text
    around = kind.before + kind.after
    pieces = {part[at : at + 6] for part in parts for at in range(len(part) - 5)}
    return not any(piece in redacted and piece not in around for piece in pieces)


def test_all_but_a_few_of_the_kinds_are_caught() -> None:
    """XE4, XE5, F46."""
    missed = [kind.name for kind in KINDS if not _is_caught(kind)]
    assert len(KINDS) >= 335
    assert len(missed) <= 8, f"missed: {missed}"


@pytest.mark.parametrize("name", [kind.name for kind in KINDS if "BEGIN" in kind.secret])
def test_a_private_key_is_caught_whatever_is_printed_before_its_lines(name: str) -> None:
    """XE4."""
    (kind,) = (kind for kind in KINDS if kind.name == name)
    assert _is_caught(kind)


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_stays_as_it_is(text: str) -> None:
    """XE5."""
    assert redact(text).text == text
