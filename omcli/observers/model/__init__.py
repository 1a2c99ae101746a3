"""The observer that asks a language model, validates its reply, and merges the model's rows with those from rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omcli.base.errors import ProviderFailed, Unusable
from omcli.base.record import positional_record, replace
from omcli.llm.model import Calls, Provider
from omcli.llm.replies import whole
from omcli.memory.batch import Batch, Observed, Observer
from omcli.memory.message import LARGEST_IMAGE, Image, TokenCounter
from omcli.memory.observation import Draft
from omcli.observers.model.evidence import Evidence, select_context_rows
from omcli.observers.model.prompt import PromptContext, observer_prompt
from omcli.observers.model.reply import parse_reply
from omcli.observers.model.slices import SliceReader
from omcli.observers.model.transcript import ObserverLimits, view_transcript
from omcli.observers.model.validation import ValidatedReply, validate
from omcli.pack.budget import last_fitting

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_LEAST_PREVIOUS, _PREVIOUS_SHARE = 700, 8
"""Context rows get at most an eighth of the transcript's tokens, or 700 if that is more, and never more than
`ObserverLimits.previous`.
"""
_WARMER_BY = 0.1


@positional_record
class ModelObserver:
    """Observes batches with a model. Rules record tool events and add rows that the model left out."""

    provider: Provider
    rules: Observer
    counter: TokenCounter
    new_token: Callable[[], str]
    """Function that returns a new unguessable token for the fence around a transcript."""
    now: Callable[[], str]
    """Function that returns the current time."""
    limits: ObserverLimits = ObserverLimits()
    guidance: str | None = None
    """Additional instructions from the user's configuration."""
    temperature: float | None = None
    images: Callable[[str], bytes | None] | None = None
    """Function that returns the bytes of the image with the given SHA-256, or None if they are not available. Without
    this function, no images are sent.
    """
    verify: bool = False
    """True to reject rows that contain anchors missing from their sources. Otherwise such rows are marked as
    unverified.
    """

    def for_retry(self) -> ModelObserver:
        """Return a copy of this observer with a slightly higher temperature, for a retry after a reply that loops. A
        temperature of None stays None.
        """
        return replace(self, temperature=None if self.temperature is None else self.temperature + _WARMER_BY)

    def begin(self, batch: Batch) -> SliceReader:
        """Return a reader that reads the batch slice by slice. Rules read the whole batch first."""
        return SliceReader(
            batch=batch,
            rules=self.rules,
            ask=self.ask_slice,
            ask_warmer=self.for_retry().ask_slice,
            by_rules=self.rules.observe(batch).drafts,
            through=batch.after,
        )

    def observe(self, batch: Batch) -> Observed:
        """Show a batch to the model in one slice, and return the observations.

        Raise the errors of `SliceReader.read`.
        """
        reading = self.begin(batch)
        reading.read(batch)
        return reading.observed()

    def ask_slice(self, part: Batch, calls: Calls) -> ValidatedReply | None:
        """Return the model's validated reply for a slice, or None if nothing in the slice can be shown to a model.

        `calls` must have a call left. Raise ProviderFailed if the slice is too long, or the reply is missing or
        unusable, and pass on the provider's NotAllowed and BadConfiguration.
        """
        shown = view_transcript(part, limits=self.limits, counter=self.counter, pictures=self._picture)
        if not shown.new:
            return None
        recorded = select_context_rows(
            part.context_rows,
            room=self._context_room(shown.tokens),
            counter=self.counter,
            shared=part.shared_rows,
        )
        return self._validated_reply(part, Evidence(shown=shown, recorded=recorded, cwd=part.cwd), calls)

    def _validated_reply(self, batch: Batch, evidence: Evidence, calls: Calls) -> ValidatedReply:
        """Ask the model and return its validated reply.

        If the reply is not a list of rows, or more than half of them have a fault (see `validate`), ask once more with
        the reason. Raise Unusable if no call is left for that, or if the second reply is no better. If the text of the
        rows is too long, ask once for a shorter reply if a call is left, and trim the shorter of the two replies to the
        limit.
        """
        token = self.new_token()

        def ask(correction: str = "") -> str:
            situation = PromptContext(
                now=self.now(), cwd=batch.cwd, guidance=self.guidance, correction=correction, session=batch.session
            )
            prompt = observer_prompt(
                evidence, situation, token=token, max_output=self.limits.reply, temperature=self.temperature
            )
            return whole(self.provider.ask(replace(prompt, reads=lambda reply: check(whole(reply)), calls=calls)))

        def check(text: str) -> ValidatedReply:
            return validate(
                parse_reply(text), evidence, batch, token=token, most_rows=self.limits.rows, verify=self.verify
            )

        text = ask()
        try:
            reply = check(text)
        except Unusable as error:
            if calls.is_over:
                raise
            reply = check(ask(f"Your last reply could not be used: {error.message}."))
            reply.findings["repaired"] += 1
        most = self.limits.output
        if (size := text_tokens(reply.drafts, self.counter)) <= most:
            return reply
        if calls.is_over:
            reply.findings["not_shortened"] += 1
            return trim(reply, most, self.counter)
        said = f"Your last reply had {size} tokens of text; at most {most} are allowed. Keep what matters most."
        try:
            shorter = check(ask(said))
            shorter.findings["shortened"] += 1
            reply = min(shorter, reply, key=lambda one: text_tokens(one.drafts, self.counter))
        except ProviderFailed:
            reply.findings["not_shortened"] += 1
        return trim(reply, most, self.counter)

    def _context_room(self, transcript: int) -> int | None:
        """Return the number of tokens available for context rows, or None if it is not limited."""
        if self.limits.previous is None:
            return None
        return min(self.limits.previous, max(_LEAST_PREVIOUS, transcript // _PREVIOUS_SHARE))

    def _picture(self, image: Image) -> bytes | None:
        may_be_sent = image.media_type in _PICTURES and image.size <= LARGEST_IMAGE
        return self.images(image.sha256) if self.images and self.provider.takes_images and may_be_sent else None


def text_tokens(drafts: Sequence[Draft], counter: TokenCounter) -> int:
    """Return the number of tokens in the text of all rows."""
    return counter.text("\n".join(draft.text for draft in drafts))


def trim(reply: ValidatedReply, most: int, counter: TokenCounter) -> ValidatedReply:
    """Return a reply with as many of its first rows as fit into `most` tokens.

    The first row is always kept, shortened if necessary. The reply's `findings` count the rows left out, and a row that
    was shortened.
    """
    kept = len(reply.drafts)
    while kept > 1 and text_tokens(reply.drafts[:kept], counter) > most:
        kept -= 1
    drafts = reply.drafts[:kept]
    if text_tokens(drafts, counter) > most:
        drafts = (replace(drafts[0], text=_beginning(drafts[0].text, most, counter)),)
    reply.findings["trimmed"] += len(reply.drafts) - kept
    reply.findings["cut"] += drafts != reply.drafts[:kept]
    return replace(reply, drafts=drafts)


def _beginning(text: str, most: int, counter: TokenCounter) -> str:
    """Return the longest prefix that fits into `most` tokens with an ellipsis. The prefix has at least one character,
    even if that does not fit.
    """
    fitting = last_fitting(lambda chars: counter.text(_cut(text, chars)) <= most, 1, len(text))
    return _cut(text, max(1, fitting))


def _cut(text: str, chars: int) -> str:
    return f"{text[:chars].rstrip()}…"
