"""Groups of rows folded into one: repeated commands, resolved failures and file edits.

Every fold is a proposal. `WorkingSet.fold` accepts it only if it is short and loses no name that matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from omcli.base import lazily
from omcli.base.record import replace
from omcli.memory.observation import FAILURES, FILE_CHANGES, SETTLED, Draft, Observation, Status, Type
from omcli.reflectors.drafts import folded, may_replace
from omcli.text.phrases import counted, without_times

_WHY_CHARACTERS = 100
_FILE_CHARACTERS = 150
"""Maximum length of a row of several edits. A pack chooses rows whole, so long ones would keep out what people said."""
_FILE = lazily(r"(?P<head>(?:Created|Modified|Deleted) .+?)(?: \(\d{1,9}\+? edits?(?: since)?\))?(?:: (?P<what>.*))?\Z")
_LISTS = lazily(r"(?:; )?(adds|removes) ([^·;]*)")

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


def by_file(rows: Sequence[Observation]) -> Iterator[Draft]:
    """Fold changes to the same file into its final state and the number of edits."""
    by_path: Groups = defaultdict(list)
    for row in rows:
        if row.type in FILE_CHANGES and isinstance(path := row.metadata.get("path"), str) and _FILE.match(row.text):
            by_path[path].append(row)
    for same in by_path.values():
        draft: Draft | None = None
        group: list[Observation] = []
        for row in same:
            more = _file([*group, row]) if group else None
            if more and len(more.text) <= _FILE_CHARACTERS and may_replace(more.text, [*group, row]):
                draft = more
                group.append(row)
            else:
                if draft:
                    yield draft
                draft, group = None, [row]
        if draft:
            yield draft


def _file(same: Sequence[Observation]) -> Draft:
    read = [found for row in same if (found := _FILE.match(row.text))]
    verb, _, what = read[-1]["head"].partition(" ")
    created = any(row.type is Type.FILE_CREATED for row in same)
    verb = verb if verb == "Deleted" else "Created" if created else "Modified"
    changed = "" if verb == "Deleted" else _summary([found["what"] or "" for found in read])
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
    """Return all changes to a file: the names added or removed, each by its last change, and then the other parts."""
    became: dict[str, str] = {}
    rest: dict[str, None] = {}
    for each in changes:
        first, *others = each.split(" · ")
        lists = _LISTS.findall(first)
        for verb, listed in lists:
            became |= dict.fromkeys((name.strip() for name in listed.partition(" (+")[0].split(", ")), verb)
        rest |= dict.fromkeys(others if lists else [first, *others])
    names = {verb: [name for name, last in became.items() if last == verb] for verb in ("adds", "removes")}
    lists = [f"{verb} {', '.join(each)}" for verb, each in names.items() if each]
    return " · ".join(filter(None, ("; ".join(lists), *rest)))


ALL = (by_command, failures, by_file)


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
