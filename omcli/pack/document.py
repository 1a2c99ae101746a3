"""A pack as a JSON document: its text, together with the rows and messages that the text contains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from omcli.memory.message import message_fields
from omcli.memory.observation import row
from omcli.pack.budget import Tier
from omcli.pack.context_pack import ContextPack
from omcli.text.clean import json_line


def document(pack: ContextPack, about: Mapping[str, object] = MappingProxyType({})) -> str:
    """Return a pack as a JSON document: its printed text, and the rows and messages in it as objects.

    It has the form `{"schema": 1, …, "tokens": {…}, "text": "…", "cross": […], "observations": […], "messages": […]}`.
    `tokens` counts the text and its tiers as printed, because the text is what a model is given. `about` holds
    additional keys. In a frozen pack, `frozen_at` is the instant at which the last row before the freeze point was
    written, or null if there is no such row.
    """
    top = {
        "schema": 1,
        **({} if pack.session is None else {"session": pack.session}),
        "counter": pack.counter,
        "budget": pack.budgets.total,
        "tokens": {"total": pack.total, **{str(tier): pack.tokens[tier] for tier in Tier}},
        "pending": pack.pending,
        **({} if pack.gap is None else {"gap": pack.gap}),
        **({} if pack.freeze_point is None else {"frozen_at": pack.freeze_point.at}),
        **about,
        "text": pack.printed,
    }
    lists: Mapping[str, list[str]] = {
        "cross": [json_line(row(observation)) for observation in pack.cross],
        "observations": [json_line(row(observation)) for observation in pack.observations],
        "messages": [
            json_line(message_fields(turn.kept, text=None if turn.is_whole else turn.text)) for turn in pack.turns
        ],
    }
    printed = [f'"{key}":[{_lines(entries)}]' for key, entries in lists.items()]
    return ",\n".join([json_line(top).removesuffix("}"), *printed]) + "}\n"


def reason_document(pack: ContextPack, words: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """Return the reasons why rows are in a pack or not, as a JSON object. `words` maps the id of a row to the words of
    the task that the row contains.

    It has the form `{…, "tokens": {…}, "rows": [{"tier", "id", "tokens", "reason", "text"}], "left_out": […]}`. In each
    list, ranked rows come first, tier by tier and the best first. `room` is the number of tokens that were left for a
    row that did not fit. Rows of other sessions are ranked by their `score`.
    """
    lists: dict[bool, list[dict[str, object]]] = {True: [], False: []}
    for each in pack.reasons:
        columns = {
            "tier": each.tier,
            "id": each.row.id,
            "tokens": each.tokens,
            "reason": each.reason,
            "words": list(words[each.row.id]) if each.row.id in words else None,
            "room": each.room,
            "score": None if each.score is None else float(f"{each.score:.3g}"),
            "text": each.row.text,
        }
        lists[each.is_chosen].append({name: value for name, value in columns.items() if value is not None})
    return {
        **({} if pack.session is None else {"session": pack.session}),
        "counter": pack.counter,
        "budget": pack.budgets.total,
        "tokens": {"total": pack.total, **{str(tier): pack.tokens[tier] for tier in Tier}},
        "rows": lists[True],
        "left_out": lists[False],
    }


def _lines(entries: Sequence[str]) -> str:
    return "\n" + ",\n".join(entries) + "\n" if entries else ""
