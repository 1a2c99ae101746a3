"""Reading what a model answered: JSON, or text where a model gave none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omcli.memory.errors import CutOff, Unusable
from omcli.memory.patterns import lazily
from omcli.memory.replies import ends_early, json_in, label_in, text_of, texts_of
from omcli.observers.model.answer import Answer, Row
from omcli.observers.model.text_reply import read_text

_IS_JSON = lazily(r"[\s\ufeff]*(?:```\w*\s*)?(?:\{|\[\s*(?:[{\"\]]|\Z))")


def read(text: str) -> Answer:
    """The reply in a text. Raises CutOff for JSON that ends early, and Unusable for what is no reply."""
    is_json = '"observations"' in text or _IS_JSON.match(text) is not None
    if is_json and ends_early(text):
        raise CutOff("the model's reply ended before it was complete")
    found = json_in(text)
    if isinstance(found, list) and (not found or all(text_of(each, "text") for each in found)):
        found = {"observations": found}
    if isinstance(found, Mapping) and isinstance(found.get("observations"), list):
        return _answer(found)
    if is_json:
        raise Unusable("the reply is no JSON object with a list of `observations`")
    answer = read_text(text)
    if answer is None:
        raise Unusable("the reply holds neither a JSON object nor a list of observations")
    return answer


def _answer(found: Mapping[str, Any]) -> Answer:
    return Answer(
        rows=tuple(map(_row, found["observations"])),
        used=_labels(found, "used"),
        current_task=text_of(found, "current_task"),
        next_step=text_of(found, "next_step"),
        title=text_of(found, "title"),
    )


def _row(found: object) -> Row:
    """A row; of what is none an empty one, which nobody believes."""
    if not isinstance(found, Mapping):
        return Row(text="")
    under = found.get("under")
    return Row(
        text=text_of(found, "text"),
        priority=_word(found, "priority"),
        kind=_word(found, "kind"),
        status=_word(found, "status"),
        at=text_of(found, "at").strip(),
        refers_to=text_of(found, "refers_to").strip(),
        is_estimate=_word(found, "refers_to_kind") == "estimated",
        sources=_labels(found, "sources"),
        replaces=_labels(found, "replaces"),
        under=under if isinstance(under, int) and not isinstance(under, bool) else None,
    )


def _word(found: Mapping[str, Any], key: str) -> str:
    return text_of(found, key).strip().lower()


def _labels(found: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(label_in, texts_of(found, key))))
