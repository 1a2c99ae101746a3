"""Our entries in the settings of a client, among those of others."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from omcli.base import lazily
from omcli.base.record import record
from omcli.clients import CLIENTS
from omcli.clients.events import EVENTS, Moment
from omcli.clients.json_edit import Part, add_key, insert, parse, remove, replace_part

WAIT = 5
"""Seconds after which a client ends a hook, unless an entry says otherwise."""
_LONGEST = 4_096
"""Maximum length of a command that can be one of ours."""
_UNUSED = ("SubagentStop",)
"""Events that are understood, but get no hook: the findings of a subagent are in the transcript of the agent that
started it.
"""


def hook_entries(client: str, command: str) -> dict[str, list[Any]]:
    """Return our entries, as in settings that have no others: for each event, a list with one element."""
    events = {event: moment for event, moment in EVENTS[client].items() if event not in _UNUSED}
    return {event: [_item(client, moment, command)] for event, moment in events.items()}


def _item(client: str, moment: Moment, command: str) -> dict[str, Any]:
    if client == "cursor":
        return {"command": command, "timeout": WAIT}
    entry: dict[str, Any] = {"type": "command", "command": command}
    if client == "gemini":
        return {"hooks": [{"name": "om-memory", **entry, "timeout": WAIT * 1000}]}
    if client == "claude-code" and moment is Moment.TOOL:
        entry |= {"async": True, "timeout": 30}  # not after a turn: a session that ends then would stop the hook
    else:
        entry["timeout"] = 3 if moment is Moment.END else WAIT  # Codex allows 3 seconds at the end
    if client == "claude-code" and moment is Moment.START:
        return {"matcher": "startup|resume|clear|compact|fork", "hooks": [entry]}
    return {"hooks": [entry]}


def with_entries(text: str, wanted: Mapping[str, list[Any]], others: Mapping[str, object]) -> str:
    """Return the text of settings with our entries and with those of the members `others` that are missing. Former
    entries of ours and of the retired tool are replaced. Raise BadConfiguration if the text is not valid.
    """
    wanted = {event: element for event, (element,) in wanted.items()}
    is_former = partial(_is_own, or_retired=True)
    return _changed(text, wanted, is_former, kept=frozenset(), others=others)


def without_entries(text: str, original: Mapping[str, Any] | None, others: Mapping[str, object]) -> str:
    """Return the text of settings without our entries, and without lists that this has emptied, unless the original
    has them. `original` is None if it is unknown.

    A member of `others` that the original lacks is removed too if it is all that is left, or if it is unchanged and the
    remaining hooks equal the original's. Raise BadConfiguration if the text is not valid.
    """
    known = original or {}
    before = known.get("hooks")
    kept = frozenset({*(("hooks",) if "hooks" in known else ()), *(before if isinstance(before, dict) else ())})
    with_ours, text = text, _changed(text, {}, _is_own, kept=kept, others={})
    for name, value in others.items():
        root = parse(text)
        member = root.part_named(name)
        if member is None or name in known:
            continue
        is_alone = len(root.parts) == 1 and text != with_ours
        is_as_before = original is not None and (root.value.get("hooks") or {}) == (before or {})
        if is_alone or (is_as_before and member.value == value):
            text = remove(text, root, member)
    return text


@record
class _Found:
    """An element of an event's list with entries of ours."""

    event: Part
    element: Part
    holder: Part
    """The list with the entries: the element's own, or the event's."""
    ours: tuple[Part, ...]
    is_whole: bool
    """True if all entries of the element are ours."""


def _changed(
    text: str,
    wanted: Mapping[str, Any],
    is_ours: Callable[[Mapping[str, Any]], bool],
    *,
    kept: frozenset[str],
    others: Mapping[str, object],
) -> str:
    emptied: set[str] = set()
    while (changed := _step(text, wanted, is_ours, emptied, kept)) is not None:
        text = changed
    placed = {found.event.key for found in _found(parse(text), is_ours)}
    for name, element in wanted.items():
        if name not in placed:
            text = insert(text, ("hooks", name), element)
    for name, value in others.items():
        if parse(text).part_named(name) is None:
            text = add_key(text, name, value)
    return text


def _step(
    text: str,
    wanted: Mapping[str, Any],
    is_ours: Callable[[Mapping[str, Any]], bool],
    emptied: set[str],
    kept: frozenset[str],
) -> str | None:
    """Return the text with one more of our entries replaced or removed, or one more list or object removed that this
    has emptied; None if there is none. Add to `emptied` the event of a removed element.
    """
    root = parse(text)
    placed: set[str] = set()
    for found in _found(root, is_ours):
        name = found.event.key or ""
        if not found.is_whole:
            return remove(text, found.holder, found.ours[0])
        if name not in wanted or name in placed:
            emptied.add(name)
            return remove(text, found.event, found.element)
        placed.add(name)
        if found.element.value != wanted[name]:
            return replace_part(text, found.element, wanted[name])
    held = root.part_named("hooks")
    if held is None or not emptied:
        return None
    for event in held.parts:
        if event.key in emptied - kept and text[event.begin : event.end] == "[]":
            return remove(text, held, event)
    return remove(text, root, held) if "hooks" not in kept and text[held.begin : held.end] == "{}" else None


def _found(root: Part, is_ours: Callable[[Mapping[str, Any]], bool]) -> Iterator[_Found]:
    events = (event for held in root.parts if held.key == "hooks" for event in held.parts)
    for event in events:
        for element in event.parts if isinstance(event.value, list) else ():
            inner = element.part_named("hooks") if isinstance(element.value, dict) else None
            holder, entries = (inner, inner.parts) if inner is not None else (event, (element,))
            ours = tuple(entry for entry in entries if isinstance(entry.value, dict) and is_ours(entry.value))
            if ours:
                yield _Found(event=event, element=element, holder=holder, ours=ours, is_whole=len(ours) == len(entries))


def entries(text: str, *, or_retired: bool = False) -> tuple[tuple[str, str], ...]:
    """Return event and command of each of our entries in settings. `or_retired` adds entries of observational-memory,
    the retired program that is also called `om`. Raise BadConfiguration if the text is not valid.
    """
    is_ours = partial(_is_own, or_retired=or_retired)
    found = _found(parse(text), is_ours)
    return tuple((each.event.key or "", " ".join(_words(entry.value))) for each in found for entry in each.ours)


def starts(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the event of each of our entries in settings, with the words that start om. Raise BadConfiguration if the
    text is not valid.
    """
    found = _found(parse(text), _is_own)
    return tuple((each.event.key or "", _parts(_words(entry.value))[0]) for each in found for entry in each.ours)


# ---- whose entry it is

_OPERATORS = ";|&<>()`"
_QUIET = frozenset({">", ">&", "||", "true", "/dev/null", "1", "2"})
"""Words that may follow a command without making it do more."""
_RUNNERS = frozenset(
    {"command", "env", "exec", "nice", "nohup", "run", "setsid", "stdbuf", "time", "timeout", "uv", "uvx"}
)
"""Programs that run the command after them, and `run`, as in `uv run`."""
_FOR = ("claude", "claude-code", "codex", "cowork", "cursor", "grok", "hermes", "opencode")
_SCRIPT = lazily(r"/observational_memory/hooks/[a-z]+/session-(?:start|end)\.sh\Z")


def _is_own(entry: Mapping[str, Any], *, or_retired: bool = False) -> bool:
    """Return True for an entry that runs `om hook`. `or_retired` includes entries of the retired tool with the same
    name.
    """
    words = _words(entry)
    _, arguments = _parts(words)
    if _is_hook(arguments):
        return True
    return or_retired and (_is_retired(arguments) or (bool(words) and bool(_SCRIPT.search(words[-1]))))


def _is_hook(arguments: Sequence[str]) -> bool:
    """Return True for `hook CLIENT` among options, such as `--db FILE`."""
    at = arguments.index("hook") if "hook" in arguments else len(arguments)
    has_verb = any(_is_word(arguments, before) for before in range(at))
    return not has_verb and not set(CLIENTS).isdisjoint(arguments[at + 1 :])


def _is_word(words: Sequence[str], at: int) -> bool:
    """Return True unless a word is an option or may be the value of one."""
    return not words[at].startswith("-") and not (at and words[at - 1].startswith("-"))


def _is_retired(arguments: Sequence[str]) -> bool:
    """Return True for a command of the retired tool, or `context` alone. Our `om context --for` has no `--cwd`."""
    verb, *rest = arguments or [""]
    if verb in ("claude-checkpoint", "codex-checkpoint"):
        return True
    if verb != "context":
        return False
    return not rest or (rest[0] == "--for" and rest[1:2] != [] and rest[1] in _FOR and "--cwd" in rest)


def _words(entry: Mapping[str, Any]) -> list[str]:
    """Return the words of an entry's command; none if it does more than run one program."""
    command, arguments = entry.get("command"), entry.get("args")
    if not isinstance(command, str) or len(command) > _LONGEST:
        return []
    if isinstance(arguments, list):
        return [command, *map(str, arguments)]
    split = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    split.whitespace_split, split.commenters = True, ""
    try:
        words = list(split)
    except ValueError:
        return []
    end = next((at for at, word in enumerate(words) if set(word) <= set(_OPERATORS)), len(words))
    if "\n" in command.strip() or not _QUIET.issuperset(words[end:]):
        return []
    is_number = end < len(words) and words[end].startswith(">") and words[end - 1 : end] in (["1"], ["2"])
    return words[: end - 1 if is_number else end]


def _parts(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that start `om`, and its arguments. Both are empty if the words run another program.

    Before the words that start `om` there may be variables (`OM_DB=…`) and programs that run the command after them
    (`timeout 5`).
    """
    begin = next((at for at, word in enumerate(words) if not _is_before(word)), len(words))
    first = next((at for at in range(begin, len(words)) if not _is_before(words[at]) and _is_word(words, at)), begin)
    for at in (begin, first):
        if at < len(words) and Path(words[at]).name == "om":
            return tuple(words[at : at + 1]), tuple(words[at + 1 :])
    module = words.index("omcli") if "omcli" in words else 0
    if module > begin and words[module - 1] == "-m":
        return tuple(words[first if first < module else begin : module + 1]), tuple(words[module + 1 :])
    return (), ()


def _is_before(word: str) -> bool:
    """Return True for a word that may stand before a program: a variable, a program that runs others, or its options
    and numbers.
    """
    variable, equals, _ = word.partition("=")
    is_variable = bool(equals) and variable.isidentifier()
    return is_variable or word.startswith("-") or word[:1].isdecimal() or Path(word).name in _RUNNERS
