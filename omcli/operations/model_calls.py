"""Model calls: limits checked before each call, a ledger of all calls, and cost totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from omcli.base.errors import OmError, OverLimit, ProviderFailed, Waiting
from omcli.base.record import mutable_record, record
from omcli.llm.model import MOST_CALLS, Embedder, EndReason, Ledger, ModelCall, Prompt, Provider, Reply, Spent
from omcli.memory.ports import Lane
from omcli.operations.clock import Clock
from omcli.text.instants import later


class CountedProvider:
    """A provider that records its calls in the ledger. It refuses calls once a hard limit is reached, and while a
    session waits after failures.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        lane: Lane,
        ledger: Callable[[], Ledger],
        limits: tuple[Limit, ...],
        patience: Patience,
        cost: Callable[[Reply], float | None],
        clock: Clock,
        warn: Callable[[str], None],
    ) -> None:
        """`ledger` returns the ledger and is first called at the first model call. `warn` is called once for each soft
        limit that is reached.
        """
        self._provider = provider
        self._log = CallLog(lane=lane, ledger=ledger, limits=limits, cost=cost, clock=clock, warn=warn)
        self._patience = patience
        self._clock = clock

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def model(self) -> str:
        return self._provider.model

    @property
    def takes_images(self) -> bool:
        """True if prompts may contain images."""
        return self._provider.takes_images

    def ask(self, prompt: Prompt) -> Reply:
        """Return the reply to a prompt.

        Before the call, raise OverLimit if a hard limit is reached, and Waiting if the prompt begins an ask and earlier
        failures make the session wait. Raise the provider's errors.
        """
        self._log.check()
        if not prompt.calls.is_begun:
            self._patience.check(self._log.ledger(), lane=self._log.lane, session=prompt.session, model=self)
            prompt.calls.is_begun = True
        begun = self._clock.monotonic()
        try:
            reply = self._provider.ask(prompt)
        except OmError as error:
            self._log.note(self, begun, outcome=error.slug, session=prompt.session)
            raise
        except BaseException:  # interrupted by Ctrl-C: the call may have been billed
            self._log.note(self, begun, outcome="interrupted", session=prompt.session)
            raise
        self._log.note(self, begun, outcome=_outcome(prompt, reply), session=prompt.session, reply=reply)
        return reply


class CallLog:
    """Checks the limits before a model call, and records the call in the ledger afterwards."""

    def __init__(
        self,
        *,
        lane: Lane,
        ledger: Callable[[], Ledger],
        limits: tuple[Limit, ...],
        cost: Callable[[Reply], float | None],
        clock: Clock,
        warn: Callable[[str], None],
    ) -> None:
        self.lane = lane
        self.ledger = ledger
        self._limits = limits
        self._cost = cost
        self._clock = clock
        self._warn = warn
        self._warned: set[str] = set()

    def check(self) -> None:
        """Raise OverLimit if a hard limit is reached. Warn once of each soft limit that is reached."""
        for limit in self._limits:
            reached = limit.check(self.ledger().spent(since=limit.since(self._clock.now())))
            if reached and limit.is_hard:
                raise OverLimit(f"{reached}; nothing was asked", hint="`om usage` shows what models have cost")
            if reached and limit.name not in self._warned:
                self._warned.add(limit.name)
                self._warn(reached)

    def note(
        self, model: Provider | Embedder, begun: float, *, outcome: str, session: str | None, reply: Reply | None = None
    ) -> None:
        """Record a call that has just ended. `begun` is the time of the monotonic clock at which it began."""
        self.ledger().note_call(
            ModelCall(
                at=self._clock.now(),
                lane=self.lane,
                session=session,
                provider=model.name,
                # A failure counts for the model that was asked, whatever name the endpoint gives it (`Patience`).
                model=reply.model if reply and outcome == "ok" else model.model,
                input_tokens=reply.input_tokens if reply else None,
                output_tokens=reply.output_tokens if reply else None,
                cached_tokens=reply.cached_tokens if reply else None,
                cost=self._cost(reply) if reply else None,
                duration=round((self._clock.monotonic() - begun) * 1000),
                outcome=outcome,
            )
        )


def _outcome(prompt: Prompt, reply: Reply) -> str:
    """Return the outcome of a call: `ok` if the reply is complete and can be read, otherwise the reason why it ended or
    the slug of the error.
    """
    if reply.stop is not EndReason.END:
        return reply.stop
    try:
        if prompt.reads is not None:
            prompt.reads(reply)
    except ProviderFailed as error:
        return error.slug
    return "ok"


class WithFallback:
    """A provider with a fallback. If the first provider fails, the second is asked with the same prompt.

    One of the ask's calls is kept for the second provider.
    """

    def __init__(self, first: Provider, second: Provider, *, warn: Callable[[str], None]) -> None:
        self._first = first
        self._second = second
        self._warn = warn

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def model(self) -> str:
        return self._first.model

    @property
    def takes_images(self) -> bool:
        """True if both providers take images, because both get the same prompt."""
        return self._first.takes_images and self._second.takes_images

    def ask(self, prompt: Prompt) -> Reply:
        """Return the first provider's reply, or the second's if the first one fails. Raise the second provider's
        errors.

        If the first provider raises OverLimit, or if the ask has only one call left, the second is not asked, and the
        first provider's error is raised.
        """
        calls = prompt.calls
        if calls.left == 1:  # the first provider replied before, and is asked to correct its reply
            return self._first.ask(prompt)
        is_begun = calls.is_begun
        calls.reserved += 1
        try:
            return self._first.ask(prompt)
        except OverLimit:
            raise
        except OmError as error:
            self._warn(f"{self._first.model}: {error.message}; asking {self._second.model}")
        finally:
            calls.reserved -= 1
        calls.is_begun = is_begun  # the second provider has failures of its own
        return self._second.ask(prompt)


_FIRST_WAIT, _GROWTH = 60.0, 3.0
"""Seconds to wait after the first failed call beyond `MOST_CALLS`, and the factor by which each further one multiplies
them.
"""
_LOOKED_BACK = 7.0
"""Days for which failed calls count."""


@record
class WaitingModel:
    """A model that failed for a session and is not asked again yet."""

    lane: str
    session: str | None
    """None for a reflection or a question across sessions."""
    provider: str
    model: str
    failures: int
    """Number of successive failed calls."""
    until: str
    """Instant at which it may be asked again."""

    @property
    def reason(self) -> str:
        """The failures and the end of the wait, as one phrase."""
        who = self.session or "all sessions"
        name = f"{self.provider}/{self.model}"
        return f"{name} failed {self.failures} times in a row for {who} and is asked again at {self.until}"

    def is_for(self, model: Provider, lane: str, session: str | None) -> bool:
        """Return True if this model waits in this lane of the session."""
        return (self.provider, self.model, self.lane, self.session) == (model.name, model.model, lane, session)


@record
class Patience:
    """Rules for the time that a session waits for a model after successive failed calls.

    As many failures as one ask can make (`MOST_CALLS`) cause no wait. The next one causes a wait of a minute, and each
    further one triples it, up to `longest` seconds. A successful call ends the wait.
    """

    longest: float
    """Maximum number of seconds to wait. 0 means that no session waits."""
    clock: Clock

    def waiting(self, ledger: Ledger) -> tuple[WaitingModel, ...]:
        """Return the models that are not asked again yet, each with its lane and session."""
        if not self.longest:
            return ()
        now = self.clock.now()
        failing = ledger.failing(since=self.clock.after(-_LOOKED_BACK * 86_400))
        return tuple(
            WaitingModel(
                lane=each.lane,
                session=each.session,
                provider=each.provider,
                model=each.model,
                failures=each.number,
                until=until,
            )
            for each in failing
            if each.lane != Lane.EMBED  # `CountedEmbedder.waiting` has a rule of its own
            if each.last <= now < (until := later(each.last, self._wait(each.number)))  # a clock may have been ahead
        )

    def check(self, ledger: Ledger, *, lane: str, session: str | None, model: Provider) -> None:
        """Raise Waiting if this model is not asked again yet for this session in this lane."""
        for found in self.waiting(ledger):
            if found.is_for(model, lane, session):
                raise Waiting(
                    f"{found.reason}; nothing was asked",
                    hint="nothing is lost; `--again` asks now, and another model is asked at once",
                )

    def _wait(self, failures: int) -> float:
        beyond = failures - MOST_CALLS
        return 0.0 if beyond < 1 else min(self.longest, _FIRST_WAIT * _GROWTH ** min(beyond - 1, _MOST_GROWTH))


_MOST_GROWTH = 30
"""Maximum exponent of the growth, so that no number overflows."""
_OF_A_DAY, _OF_A_MONTH = len("2026-02-10"), len("2026-02")


@record
class Limit:
    """Maximum use of models per day or per month, in tokens or US dollars."""

    name: str
    """Name of the setting, such as `limits.day_tokens` or `limits.soft_month_cost`."""
    most: float
    is_cost: bool
    of_month: bool
    """True for a calendar month, False for a day, in UTC."""
    is_hard: bool
    """True if further calls are refused; a soft limit only causes a warning."""

    @property
    def period(self) -> str:
        """The words "this month" or "today"."""
        return "this month" if self.of_month else "today"

    def since(self, now: str) -> str:
        """Return the day on which the limit's current period began."""
        return now[:_OF_A_MONTH] + "-01" if self.of_month else now[:_OF_A_DAY]

    def used(self, spent: Spent) -> float:
        """Return the tokens or dollars that count towards the limit, given what was spent in its period."""
        return spent.cost if self.is_cost else spent.tokens

    def share(self, spent: Spent) -> float:
        """Return the used share of the limit: 1 or more if it is reached."""
        return self.used(spent) / self.most if self.most else 1.0

    def check(self, spent: Spent) -> str | None:
        """Return a message to the user if the limit is reached, otherwise None."""
        used = self.used(spent)
        if used < self.most:
            return None
        so_far = f"${used:.2f} of ${self.most:.2f}" if self.is_cost else f"{used:.0f} of {self.most:.0f} tokens"
        return f"`{self.name}` is reached: {so_far} {self.period}"


_DAY = len("2026-02-10")


class By(StrEnum):
    """Attribute by which calls are grouped."""

    DAY = "day"
    MODEL = "model"
    LANE = "lane"
    SESSION = "session"


@mutable_record
class CallSum:
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    untold: int = 0
    """Number of successful calls without complete token counts from the endpoint."""
    cost: float = 0.0
    """US dollars."""
    unpriced: int = 0
    """Number of calls without a known price, unless they failed without token counts."""
    duration: int = 0
    """Milliseconds."""

    def add(self, call: ModelCall) -> None:
        is_ok = call.outcome == "ok"
        told = (call.input_tokens, call.output_tokens)
        self.calls += 1
        self.failed += not is_ok
        self.input_tokens += call.input_tokens or 0
        self.output_tokens += call.output_tokens or 0
        self.cached_tokens += call.cached_tokens or 0
        # A call that failed without a reply has no token counts.
        self.untold += is_ok and None in told
        self.cost += call.cost or 0.0
        self.unpriced += call.cost is None and (is_ok or told != (None, None))
        self.duration += call.duration


@record
class LimitUsage:
    limit: Limit
    used: float
    """Tokens or US dollars, depending on the limit."""


@record
class UsageReport:
    sums: Mapping[str, CallSum]
    """Sums by day, model, lane or session, sorted by name."""
    total: CallSum
    limits: tuple[LimitUsage, ...]


def usage(
    ledger: Ledger, *, since: str | None, until: str | None, by: By, limits: Sequence[Limit], now: str
) -> UsageReport:
    """Return the sums of the calls in a period. The use of `limits` is counted for today or this month, whatever the
    period.
    """
    sums: dict[str, CallSum] = {}
    total = CallSum()
    for call in ledger.calls(since=since, until=until):
        sums.setdefault(_named(call, by), CallSum()).add(call)
        total.add(call)
    return UsageReport(
        sums=dict(sorted(sums.items())),
        total=total,
        limits=tuple(LimitUsage(limit=one, used=one.used(ledger.spent(since=one.since(now)))) for one in limits),
    )


def _named(call: ModelCall, by: By) -> str:
    match by:
        case By.DAY:
            return call.at[:_DAY]
        case By.MODEL:
            return f"{call.provider}/{call.model}"
        case By.LANE:
            return call.lane
        case By.SESSION:
            return call.session or "(none)"
