"""A prompt in words, for models that take nothing else."""

from __future__ import annotations

import json

from omcli.llm.model import Picture, Prompt, Rung
from omcli.memory.message import attachment


def system_text(prompt: Prompt, rung: Rung) -> str:
    """The rules; where nothing else tells the model of the schema, with the schema."""
    if rung is Rung.JSON_SCHEMA:
        return prompt.system
    schema = json.dumps(prompt.schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{prompt.system}\n\n"
        f"Reply with one JSON document that fits this JSON schema, without a word or a code fence around it:\n{schema}"
    )


def joined(content: tuple[str | Picture, ...], *, pictures: bool) -> tuple[str | Picture, ...]:
    """The content with neighbouring texts joined by a line break; without `pictures`, each of them in words."""
    parts: list[str | Picture] = []
    for part in content:
        shown = part if pictures or isinstance(part, str) else attachment("image", part.media_type, len(part.data))
        if isinstance(shown, str) and parts and isinstance(parts[-1], str):
            parts[-1] = f"{parts[-1]}\n{shown}"
        else:
            parts.append(shown)
    return tuple(parts)


def whole_text(prompt: Prompt) -> str:
    """The whole prompt as one text: rules and schema, an empty line, content."""
    content = "".join(part for part in joined(prompt.content, pictures=False) if isinstance(part, str))
    return f"{system_text(prompt, Rung.PROMPT)}\n\n{content}\n"
