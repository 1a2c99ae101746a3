"""What is kept of a block, as text: its rows to be, and what else the observer said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from omcli.base.record import fields_of
from omcli.memory.observation import Draft, Priority, Source, Status, Type
from omcli.memory.roles import Observed

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def written(observed: Observed, ids: tuple[str, ...]) -> str:
    """As JSON; what is not said is left out."""
    rows = [{"id": name, **_plain(draft)} for name, draft in zip(ids, observed.drafts, strict=True)]
    said = {"rows": rows, "used": observed.used, "title": observed.title, "findings": dict(observed.findings)}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _plain(draft: Draft) -> dict[str, object]:
    said = fields_of(draft) | {"metadata": dict(draft.metadata)}
    return {name: value for name, value in said.items() if value or name == "importance"}


def read(text: str) -> tuple[Observed, tuple[str, ...]]:
    """What was written. Raises ValueError where it is anything else."""
    try:
        said: Any = json.loads(text)
        rows = _list(said["rows"])
        observed = Observed(
            drafts=tuple(map(_draft, rows)),
            used=_ids(said["used"]),
            title=None if said["title"] is None else _text(said["title"]),
            findings={_text(name): _number(count) for name, count in _mapping(said["findings"]).items()},
        )
        return observed, _ids([row["id"] for row in rows])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no block: {error!r}") from error


def _draft(row: Mapping[str, object]) -> Draft:
    fields: dict[str, Any] = {name: meaning(row[name]) for name, meaning in _MEANINGS.items() if name in row}
    draft = Draft(**fields)
    if not (draft.text and draft.sources and 0 <= draft.importance <= 10) or "\n" in draft.text:
        raise ValueError("a row without a text in one line, a source, or an importance from 0 to 10")
    return draft


def _is(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


def _text(value: object) -> str:
    found: str = _is(str, value)
    return found


def _number(value: object) -> int:
    found: int = _is(int, value)
    return found


def _list(value: object) -> list[Any]:
    found: list[Any] = _is(list, value)
    return found


def _mapping(value: object) -> dict[str, object]:
    found: dict[str, object] = _is(dict, value)
    return found


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(map(_number, _list(value)))


def _ids(value: object) -> tuple[str, ...]:
    ids = _texts(value)
    if not all(map(_ID.fullmatch, ids)):
        raise ValueError(f"{ids!r} are not all ids of rows")
    return ids


_MEANINGS: Mapping[str, Callable[[object], object]] = {
    "text": _text,
    "type": lambda value: Type(_text(value)),
    "importance": _number,
    "sources": _numbers,
    "priority": lambda value: Priority(_text(value)),
    "status": lambda value: Status(_text(value)),
    "event_at": _text,
    "refers_to": _text,
    "tags": _texts,
    "metadata": _mapping,
    "replaces": _ids,
    "reason": _text,
    "supports": _ids,
    "source": lambda value: Source(_text(value)),
    "under": _text,
}
