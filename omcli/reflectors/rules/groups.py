"""Groups of rows folded into one: repeated commands, resolved failures, reads, file edits, and finished requests.

Every fold is a proposal. `WorkingSet.fold` accepts it only if it is not longer than the rows it replaces.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from omcli.base import lazily
from omcli.base.record import replace
from omcli.memory.observation import (
    FAILURES,
    FILE_CHANGES,
    SETTLED,
    Draft,
    Observation,
    Priority,
    Status,
    Type,
)
from omcli.reflectors.drafts import folded
from omcli.reflectors.rules.working_set import WorkingSet
from omcli.text.phrases import AGENT, counted, first_of, speaker, without_times

_NAMES_SHOWN = 16
_LINES_SHOWN = 6
_WHY_CHARACTERS = 100
_STORY_CHARACTERS = 2000
"""Maximum length of a request with its results, about 600 tokens."""
_MORE = lazily(r"\+\d{1,9}\+? more\Z")
_FILE = lazily(r"(?P<head>(?:Created|Modified|Deleted) .+?)(?: \(\d{1,9}\+? edits?(?: since)?\))?(?:: (?P<what>.*))?\Z")
_LISTS = lazily(r"(?:; )?(adds|removes) ([^·;]*)")
_READ_TYPES = frozenset({Type.FILE_READ, Type.SEARCH_PERFORMED})
_REQUEST_TYPES = frozenset({Type.REQUEST, Type.QUESTION})

Groups = dict[object, list[Observation]]


def by_command(rows: Sequence[Observation]) -> Iterator[Draft]:
    """Fold runs of the same command in the same directory into a count and the last result. Failures that now succeed
    are included.
    """
    types = FAILURES | {Type.COMMAND_RUN}
    by_command: Groups = defaultdict(list)
    for row in rows:
        if row.type in types and (command := row.metadata.get("command")) and _is_settled(row):
            by_command[command, row.metadata.get("directory")].append(row)
    for same in by_command.values():
        last = max(same, key=lambda row: (row.dated, row.sources))
        if len(same) > 1 and last.type is Type.COMMAND_RUN:
            yield _counted(same, last)


def failures(rows: Sequence[Observation]) -> Iterator[Draft]:
    """Fold resolved failures of the same command or target into a count and the last failure.

    If few files changed between the last failure and its resolution, the draft names them.
    """
    changes = [row for row in rows if row.type in FILE_CHANGES and row.sources]
    by_target: Groups = defaultdict(list)
    for row in rows:
        if row.type in FAILURES and row.status is Status.RESOLVED:
            what = row.metadata.get("command") or row.metadata.get("target") or row.text
            by_target[row.type, what, row.metadata.get("directory")].append(row)
    for same in by_target.values():
        if len(same) > 1:
            draft = _counted(same, same[-1], status=Status.RESOLVED)
            between = [row for row in changes if same[-1].sources[:1] < row.sources[-1:] < same[-1].sources[-1:]]
            yield _with_change(draft, same, between)


def others(working: WorkingSet) -> Iterator[Draft]:
    """Yield the folds that lose detail: reads, then file edits, then finished requests. Each kind is oldest first."""
    for find in (_read_rows, _files, _done):
        yield from sorted(find(working), key=lambda draft: draft.event_at or "")


def _read_rows(working: WorkingSet) -> Iterator[Draft]:
    """Fold files read, searches and minor commands between two requests into one row."""
    for stretch in _by_request(working):
        if len(stretch) > 1:
            kinds = (
                ("Read ", ", ", [row for row in stretch if row.type is Type.FILE_READ]),
                ("Searched ", "; ", [row for row in stretch if row.type is Type.SEARCH_PERFORMED]),
                ("Ran: ", "; ", [row for row in stretch if row.type is Type.COMMAND_RUN]),
            )
            parts = [f"{verb}{first_of(_names(same, verb, joint), joint)}" for verb, joint, same in kinds if same]
            yield folded(stretch, " · ".join(parts), reason="folded")


def _by_request(working: WorkingSet) -> Iterator[list[Observation]]:
    free = {row.id for row in working.rows_to_fold() if _is_read(row)}
    stretch: list[Observation] = []
    for row in working.rows.values():
        if row.id in free:
            stretch.append(row)
        elif row.type in _REQUEST_TYPES and speaker(row.text) != "Agent":
            yield stretch
            stretch = []
    yield stretch


def _is_read(row: Observation) -> bool:
    return row.type in _READ_TYPES or (
        row.type is Type.COMMAND_RUN and row.priority is Priority.LOW and _is_settled(row)
    )


def _names(rows: Iterable[Observation], verb: str, joint: str) -> list[str]:
    """Return the names that rows list, without duplicates. Results and endings such as `+3 more` are left out."""
    names: list[str] = []
    for row in rows:
        searches = row.metadata.get("searches")
        if row.type is Type.SEARCH_PERFORMED and isinstance(searches, list | tuple):
            names += [f'"{each.get("pattern")}"' for each in searches if f'"{each.get("pattern")}"' in row.text]
        else:
            listed = without_times(row.text).removeprefix(verb).partition(" → ")[0]
            names += [name for name in listed.split(joint) if not _MORE.match(name)]
    return list(dict.fromkeys(names))


def _files(working: WorkingSet) -> Iterator[Draft]:
    """Fold changes to the same file into its final state and the number of edits."""
    by_path: Groups = defaultdict(list)
    for row in working.rows_to_fold():
        if row.type in FILE_CHANGES and isinstance(path := row.metadata.get("path"), str):
            by_path[path].append(row)
    for same in by_path.values():
        read = [_FILE.match(row.text) for row in same]
        if len(same) > 1 and (last := read[-1]) is not None:
            yield _file(same, last["head"], [found["what"] or "" for found in read if found])


def _file(same: Sequence[Observation], head: str, changes: Sequence[str]) -> Draft:
    verb, _, what = head.partition(" ")
    created = any(row.type is Type.FILE_CREATED for row in same)
    verb = verb if verb == "Deleted" else "Created" if created else "Modified"
    changed = "" if verb == "Deleted" else _summary(changes)
    edits = sum(_edits(row) for row in same)
    times = (
        f" ({counted(edits)} edit{'s' if edits > 1 else ''}{' since' if created else ''})"
        if edits and verb != "Deleted"
        else ""
    )
    draft = folded(same, f"{verb} {what}{times}{f': {changed}' if changed else ''}", reason="folded")
    about = {"path": same[-1].metadata["path"], "change": verb.lower(), "edits": edits}
    kind = Type.FILE_CREATED if created else Type.FILE_MODIFIED
    return replace(draft, type=kind, metadata={**draft.metadata, **about})


def _summary(changes: Sequence[str]) -> str:
    """Return a summary of the changes to a file.

    It lists the names added or removed, each by its last change, then the newest changes without names, and finally the
    other parts of the last change.
    """
    became: dict[str, str] = {}
    lines: dict[str, None] = {}
    for each in changes:
        first = each.partition(" · ")[0]
        lists = _LISTS.findall(first)
        for verb, listed in lists:
            became |= dict.fromkeys((name.strip() for name in listed.partition(" (+")[0].split(", ")), verb)
        if first and not lists:
            lines[first] = None
    names = {verb: [name for name, last in became.items() if last == verb] for verb in ("adds", "removes")}
    lists = [f"{verb} {first_of(each, ', ', shown=_NAMES_SHOWN)}" for verb, each in names.items() if each]
    rest = changes[-1].split(" · ")[1:]
    return " · ".join(dict.fromkeys(filter(None, ("; ".join(lists), *list(lines)[-_LINES_SHOWN:], *rest))))


def _done(working: WorkingSet) -> Iterator[Draft]:
    """Fold finished requests together with their results: the outcomes within the range of the request's sources."""
    rows = working.rows_to_fold()
    results = [row for row in rows if row.type is Type.OUTCOME and row.sources and row.status is not Status.OPEN]
    taken: set[str] = set()
    for asked in rows:
        if asked.type is not Type.REQUEST or asked.status is not Status.DONE or len(asked.sources) < 2:
            continue
        first, last = asked.sources[0], asked.sources[-1]
        text, folding = asked.text, [asked]
        for row in results:
            more = f"{' → ' if folding == [asked] else ' · '}{row.text.removeprefix(AGENT)}"
            fits = len(text) + len(more) <= _STORY_CHARACTERS
            if first < row.sources[-1] <= last and row.id not in taken and fits:
                text += more
                folding.append(row)
        if len(folding) > 1:
            taken |= {row.id for row in folding}
            yield folded(folding, text, reason="done", status=Status.DONE)


def _counted(same: Sequence[Observation], last: Observation, *, status: Status | None = None) -> Draft:
    """Fold rows into the last one, with the total count. If another one is a failure, its reason is added."""
    times = sum(_number(row, "times") for row in same)
    failed = [row for row in same if row.type in FAILURES and row is not last]
    what, arrow, outcome = without_times(last.text).partition(" → ")
    why = f"; failed: {_cut(without_times(failed[-1].text).partition(' → ')[2])}" if failed and arrow else ""
    text = f"{what} (× {counted(times)}{why}){f', last{arrow}{outcome}' if arrow else ''}"
    draft = replace(folded(same, text, reason="counted"), status=status or last.status)
    about = {name: last.metadata[name] for name in ("command", "target", "tool", "exit_code") if name in last.metadata}
    return replace(draft, type=last.type, metadata={**draft.metadata, **about, "times": times})


def _with_change(draft: Draft, same: Sequence[Observation], changes: Sequence[Observation]) -> Draft:
    """Add the names of the files that were changed before the failure was resolved, if there are at most three."""
    paths = list(dict.fromkeys(found["head"].partition(" ")[2] for row in changes if (found := _FILE.match(row.text))))
    if not 0 < len(paths) <= 3:
        return draft
    fixed = folded(same, f"{draft.text} → works after changes to {', '.join(paths)}", reason="mended", also=changes)
    return replace(draft, text=fixed.text, sources=fixed.sources, supports=fixed.supports)


def _is_settled(row: Observation) -> bool:
    return row.status in SETTLED or (row.status is None and row.type is Type.COMMAND_RUN)


def _edits(row: Observation) -> int:
    """Return the number of edits in a row. Creating or deleting a file does not count."""
    edits = row.metadata.get("edits")
    return edits if isinstance(edits, int) else int(row.type is Type.FILE_MODIFIED)


def _number(row: Observation, name: str) -> int:
    number = row.metadata.get(name)
    return max(1, number) if isinstance(number, int) else 1


def _cut(why: str) -> str:
    return why if len(why) <= _WHY_CHARACTERS else f"{why[: why.rfind(' ', 0, _WHY_CHARACTERS)]} …"
