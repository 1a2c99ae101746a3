"""Replies from a file, in order, for tests and for demonstrations without a model.

The file is the model's name: `om observe --model scripted/replies.json` (`scripted//tmp/replies.json` for an absolute
path). It contains JSON or JSON Lines, in one of two forms:

- a list, or one reply per line: each request takes the next reply. A request after the last one fails as unreachable.
- a single reply, which is any other JSON, such as a file with only one line: every request takes this reply.

A reply is one of:

- `"echo"`: a complete reply made from the prompt (see `echo`). For an observer, it has a row for each labelled message
  (`m1`, `m2`, …) with the words of that message. For a reflector, it has one reflection made of the first words of all
  rows shown, except rows that must be kept verbatim.
- any other string: the text of the reply. Blank text fails as unusable, as with any provider.
- an object with these fields, all of them optional:
    `text`    the text; `"echo"` as above
    `json`    any JSON value, instead of `text`
    `stop`    `end` (default), `length` or `refusal`
    `usage`   `{"input": 1200, "output": 80, "cached": 0}`; without it, token counts are unknown
    `sleep`   seconds to wait before replying; if the deadline passes, the request fails as unreachable
    `until`   name of a file in the script's folder; the reply is given once it exists, with the same deadline
    `error`   slug of an error to raise instead: `unreachable`, `not-a-model`, `prompt-too-long`, `refused`,
              `unusable-reply`, `not-allowed`, `unknown-model`, …; `text` is then its message
    `times`   number of requests that take this reply; default 1, or any number for a single reply
    `when`    name of a schema (`Prompt.name`): requests with other schemas skip the reply. So one file can contain
              replies for the observer and for the reflector.

Requests are recorded in a file next to the script, `replies.json.asked.jsonl`, one JSON object per line: `ask` (number
of the request, from 1), `reply` (index of the reply in the script, from 0; null if none was left), `name`, `system`,
`content` (texts, and pictures as `{"image": media type, "bytes": size}`), `schema`, `max_output`, `temperature`. The
record also determines which replies are left. It is read under a lock, so any number of processes can share a script,
in sequence or at once, and no reply is given too often. A request is recorded before its reply is given, so a request
that is killed while it sleeps has used up its reply, as with a paid model. To start again, delete the record.
"""

from __future__ import annotations

import fcntl
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from omcli.base import errors
from omcli.base.errors import BadConfiguration, OmError, PromptTooLong, Unreachable, Unusable
from omcli.base.record import record
from omcli.llm.model import EndReason, Picture, Prompt, Reply
from omcli.providers.wire import token_count

_ECHO = "echo"
_TAKEN = re.compile(rb'^\{"ask": [0-9]+, "reply": ([0-9]+|null)', re.MULTILINE)
"""Matches the beginning of a recorded line, which is complete even if the process was killed while writing the line."""
_LOOKS_EVERY = 0.02
"""Seconds between checks for an awaited file."""
_FIELDS = {"text", "json", "stop", "usage", "sleep", "until", "error", "times", "when"}


@record
class ScriptedReply:
    text: str
    stop: EndReason
    usage: Mapping[str, int | None]
    sleep: float
    until: Path | None
    error: type[OmError] | None
    times: int | None
    """Number of requests that take this reply. None means any number."""
    name: str | None
    """Name of the schema that the reply is for. None means any schema."""


class Scripted:
    """A provider that replies from a script."""

    def __init__(
        self,
        script: Path,
        *,
        seconds: float,
        takes_images: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = "scripted"
        self.model = script.name
        self.takes_images = takes_images
        self._entries = _entries(script)
        self._asked = script.with_name(f"{script.name}.asked.jsonl")
        self._seconds, self._sleep = seconds, sleep

    def ask(self, prompt: Prompt) -> Reply:
        """Record the request and return the next reply.

        Raise the error that the script names, Unreachable if no reply is left or the deadline passes, and Unusable if
        the text of a reply that stopped with `end` is blank. Raise BadConfiguration if the record of requests cannot be
        written.
        """
        entry = self._next(prompt)
        if entry is None or entry.error is not PromptTooLong:
            prompt.calls.take()
        if entry is None:
            raise Unreachable(f"{self.model} has no reply left", hint="add one, or delete the record beside it")
        if self._sleep_for(entry) >= self._seconds:
            raise Unreachable(f"{self.model} gave no reply within {self._seconds:g} s")
        if entry.error is not None:
            raise entry.error(entry.text or f"an error of {self.model}")
        if entry.stop is EndReason.END and not entry.text.strip():
            raise Unusable(f"{self.model} gave an empty reply")
        return Reply(
            text=echo(prompt) if entry.text == _ECHO else entry.text,
            stop=entry.stop,
            model=self.model,
            input_tokens=entry.usage.get("input"),
            output_tokens=entry.usage.get("output"),
            cached_tokens=entry.usage.get("cached"),
        )

    def _sleep_for(self, entry: ScriptedReply) -> float:
        """Wait as the reply requires, but not past the deadline. Return the seconds waited."""
        waited = min(entry.sleep, self._seconds)
        self._sleep(waited)
        while entry.until is not None and waited < self._seconds and not entry.until.exists():
            self._sleep(_LOOKS_EVERY)
            waited += _LOOKS_EVERY
        return waited

    def _next(self, prompt: Prompt) -> ScriptedReply | None:
        """Take the first remaining reply for this prompt, and record the request. Return None if no reply is left."""
        try:
            with self._asked.open("a+b", buffering=0) as asked:
                fcntl.flock(asked, fcntl.LOCK_EX)
                asked.seek(0)
                record = asked.read()
                taken = [int(index) for index in _TAKEN.findall(record) if index != b"null"]
                position = self._position(prompt.name, Counter(taken))
                shown = {"ask": len(_TAKEN.findall(record)) + 1, "reply": position, **_recorded(prompt)}
                is_whole = not record or record.endswith(b"\n")
                asked.write(f"{'' if is_whole else chr(10)}{json.dumps(shown)}\n".encode())
        except OSError as error:
            raise BadConfiguration(f"the record {str(self._asked)!r} cannot be written: {error.strerror}") from error
        return None if position is None else self._entries[position]

    def _position(self, name: str, used: Mapping[int, int]) -> int | None:
        for at, entry in enumerate(self._entries):
            if entry.name in (None, name) and (entry.times is None or used.get(at, 0) < entry.times):
                return at
        return None


def _recorded(prompt: Prompt) -> dict[str, object]:
    return {
        "name": prompt.name,
        "system": prompt.system,
        "content": [
            {"image": part.media_type, "bytes": len(part.data)} if isinstance(part, Picture) else part
            for part in prompt.content
        ],
        "schema": prompt.schema,
        "max_output": prompt.max_output,
        "temperature": prompt.temperature,
    }


def _entries(script: Path) -> tuple[ScriptedReply, ...]:
    """Return the replies in a file. Raise BadConfiguration if the file cannot be read or is not valid."""
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"the script {str(script)!r} cannot be read: {error}") from error
    try:
        try:
            replies = json.loads(text)
        except ValueError:
            replies = [json.loads(line) for line in text.splitlines() if line.strip()]
        if not isinstance(replies, list):
            return (_entry(replies, script.parent, times=None),)
        return tuple(_entry(reply, script.parent, times=1) for reply in replies)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadConfiguration(f"the script {str(script)!r} is not valid: {error}") from error


def _entry(reply: Any, folder: Path, *, times: int | None) -> ScriptedReply:
    fields: dict[str, Any] = {"text": reply} if isinstance(reply, str) else dict(reply)
    if unknown := fields.keys() - _FIELDS:
        raise ValueError(f"a reply has no field {min(unknown)!r}")
    text = json.dumps(fields["json"], ensure_ascii=False) if "json" in fields else fields.get("text", "")
    if not isinstance(text, str):
        raise TypeError("`text` is not a string")
    slug = fields.get("error")
    return ScriptedReply(
        text=text,
        stop=EndReason(fields.get("stop", "end")),
        usage={name: token_count(tokens) for name, tokens in fields.get("usage", {}).items()},
        sleep=float(fields.get("sleep", 0)),
        until=folder / fields["until"] if "until" in fields else None,
        error=None if slug is None else _error_type(slug),
        times=fields.get("times", times),
        name=fields.get("when"),
    )


def _error_type(slug: str) -> type[OmError]:
    kinds = (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OmError))
    for kind in kinds:
        if kind.slug == slug:
            return kind
    raise ValueError(f"{slug!r} is not the slug of an error")


_FENCE = re.compile(r"^<<< transcript (\S+)\n(.*)^>>> transcript \1$", re.MULTILINE | re.DOTALL)
_MESSAGE = re.compile(
    r"^(?P<label>m[0-9]{1,6})(?: (?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}))?(?: (?P<time>[0-9]{2}:[0-9]{2}))?"
    r"(?P<before> \(before\))? (?:(?P<who>[^:\n\[]{1,80}): )?(?P<words>.*)$"
)
_ROW = re.compile(r"^(?:\W{0,4}|## Group `)(?P<label>o[0-9]{1,6})\b`?(?P<words>.*)$")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LONGEST = 400
_FIRST_WORDS = 4


def echo(prompt: Prompt) -> str:
    """Return a JSON reply to an observer's or reflector's prompt. Equal prompts get equal replies.

    The reply to an observer has one row for each message, with its words, except for messages shown only as context.
    The reply to a reflector (whose schema has `reflections`) keeps verbatim rows, and folds the others into one
    reflection made of the first words of each.
    """
    text = "\n".join(part for part in prompt.content if isinstance(part, str))
    properties = prompt.schema.get("properties")
    is_reflector = isinstance(properties, Mapping) and "reflections" in properties
    return json.dumps(_reflected(text) if is_reflector else _observed(text), ensure_ascii=False)


def _observed(text: str) -> dict[str, object]:
    fenced = _FENCE.search(text)
    rows: dict[str, list[str]] = {}
    times: dict[str, str] = {}
    words: list[str] = []
    day = time = ""
    for line in (fenced[2] if fenced else text).splitlines():
        found = _MESSAGE.match(line)
        if found is None or found["label"] in rows:
            words.append(line)
            continue
        day, time = found["day"] or day, found["time"] or time
        words = [found["words"]]
        if not found["before"]:
            rows[found["label"]] = words
            times[found["label"]] = f"{day} {time}"
    return {
        "observations": [_row(label, said, times[label]) for label, said in rows.items()],
        "used": [],
        "current_task": None,
        "next_step": None,
        "title": None,
    }


def _row(label: str, words: Iterable[str], at: str) -> dict[str, object]:
    return {
        "text": _one_line(words) or label,
        "priority": "medium",
        "kind": "event",
        "status": None,
        "at": at,
        "refers_to": None,
        "refers_to_kind": None,
        "sources": [label],
        "replaces": [],
        "under": None,
    }


def _reflected(text: str) -> dict[str, object]:
    rows: dict[str, list[str]] = {}
    words: list[str] = []
    for line in text.splitlines():
        if (found := _ROW.match(line)) and found["label"] not in rows:
            words = rows[found["label"]] = [found["words"]]
        elif line.startswith(("_range: ", "- ")):
            words.append(line)
    kept = [label for label, said in rows.items() if "(verbatim)" in " ".join(said)]
    folded = {label: _one_line(said) for label, said in rows.items() if label not in kept}
    days = sorted(day for said in folded.values() for day in _DAY.findall(said)[:1])
    reflections: list[dict[str, object]] = []
    if folded:
        reflections.append({
            "text": _one_line(_first_words(said) for said in folded.values()) or "rows",
            "priority": "medium",
            "kind": "event",
            "status": None,
            "from": list(folded),
            "first": days[0] if days else None,
            "last": days[-1] if days else None,
        })  # fmt: skip
    return {"reflections": reflections, "keep": kept, "drop": [], "items": []}


def _first_words(row: str) -> str:
    """Return the first words of a row, without its range, date and kind.

    Backticks are removed because the cut could leave one unpaired.
    """
    return " ".join(row.rpartition("_ - ")[2].partition(": ")[2].replace("`", "").split()[:_FIRST_WORDS])


def _one_line(words: Iterable[str]) -> str:
    return " ".join(" ".join(words).split())[:_LONGEST]
