"""The schedulers' own programs: `crontab`, `systemctl`, `launchctl`."""

from __future__ import annotations

import os
import subprocess

from omcli.base.errors import InputOutput
from omcli.base.record import record

_SECONDS = 30.0


@record
class Answer:
    """What a program said."""

    code: int
    output: bytes
    complaint: str
    """The first line of what it wrote to stderr."""


def answer(*words: str, given: bytes = b"") -> Answer | None:
    """Runs a program; None where there is none of that name. Raises InputOutput for one that does not end or start.

    It speaks English, so that what it says can be told apart.
    """
    try:
        process = subprocess.run(
            words,
            input=given,
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired:
        raise InputOutput(f"`{' '.join(words)}` has not ended for {_SECONDS:g} seconds") from None
    except OSError as error:
        raise InputOutput(f"`{words[0]}` cannot be started: {error.strerror}") from error
    said = process.stderr.decode(errors="replace").strip().splitlines()
    return Answer(code=process.returncode, output=process.stdout, complaint=said[0].strip() if said else "")


def first_complaint(*commands: tuple[str, ...]) -> str | None:
    """Runs one command after another up to the first one that fails, and gives what that said; None if none did."""
    for command in commands:
        found = answer(*command)
        if found is None:
            return f"there is no `{command[0]}` here"
        if found.code:
            return found.complaint or f"`{' '.join(command)}` ended with {found.code}"
    return None
