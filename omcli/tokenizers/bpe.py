"""Exact counters, which need a tokenizer's rank file on disk. Nothing is ever downloaded.

The file is expected in tiktoken's cache, checked by its hash and read here, because tiktoken's own loader downloads a
missing or damaged file without a timeout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from omcli.base.errors import BadConfiguration
from omcli.base.record import record
from omcli.tokenizers.counter import Counter, CountText


@record
class _Encoding:
    """A published tokenizer: its rank file, and the pattern that splits text before merging."""

    name: str
    file_name: str
    """Name in tiktoken's cache: the SHA-1 of the URL."""
    sha256: str
    pattern: str


_UPPER, _LOWER, _SUFFIX = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

_ENCODINGS: Mapping[str, _Encoding] = {
    "o200k": _Encoding(
        name="o200k_base",
        file_name="fb374d419588a4632f3f557e76b4b70aebbca790",
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern=rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SUFFIX}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "cl100k": _Encoding(
        name="cl100k_base",
        file_name="9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}
NAMES = tuple(_ENCODINGS)


def counter(name: str, environment: Mapping[str, str] = os.environ) -> Counter:
    """Return the counter of this name, with its tokenizer loaded.

    Raises BadConfiguration if the rank file is missing or not the published one.
    """
    return Counter(name=name, count=_count_with(_ENCODINGS[name], environment), per_message=4)


def has_file(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if the rank file of this counter is on disk; its hash is not checked."""
    return _file(_ENCODINGS[name], environment) is not None


def _count_with(encoding: _Encoding, environment: Mapping[str, str]) -> CountText:
    ranks = _read_file(encoding, environment)
    import tiktoken  # noqa: PLC0415 - takes longer to import than the rest of om

    tokenizer = tiktoken.Encoding(encoding.name, pat_str=encoding.pattern, mergeable_ranks=ranks, special_tokens={})
    # Ordinary, because a transcript may contain the text of a special token.
    return lambda text: len(tokenizer.encode_ordinary(text))


def _read_file(encoding: _Encoding, environment: Mapping[str, str]) -> dict[bytes, int]:
    import base64  # noqa: PLC0415 - every command imports this module
    import hashlib  # noqa: PLC0415

    path = _file(encoding, environment)
    if path is None:
        searched = " or ".join(str(folder) for folder in _folders(environment))
        raise BadConfiguration(
            f"the rank file of {encoding.name} is not on this machine",
            hint=f"use the counter o200k-approx, or put the file as {encoding.file_name} into {searched}",
        )
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != encoding.sha256:
        raise BadConfiguration(
            f"{path} is not the rank file of {encoding.name}", hint="remove it, or use the counter o200k-approx"
        )
    fields = (line.split() for line in content.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in fields}


def _file(encoding: _Encoding, environment: Mapping[str, str]) -> Path | None:
    files = (folder / encoding.file_name for folder in _folders(environment))
    return next((path for path in files if path.is_file()), None)


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders of tiktoken's cache."""
    import tempfile  # noqa: PLC0415 - imports much

    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if environment.get(variable):
            yield Path(environment[variable])
    yield Path(environment.get("TMPDIR") or tempfile.gettempdir(), "data-gym-cache")
