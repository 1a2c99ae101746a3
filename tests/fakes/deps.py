"""Dependencies of operations as tests make them: rules, unless an observer or a reflector is given."""

from __future__ import annotations

from omcli.memory.batch import Batch, Observed, Observer
from omcli.memory.reflection import Reflector
from omcli.operations.deps import ObserverDeps, Policy, ReflectorDeps


def by_observer(observer: Observer) -> ObserverDeps:
    """An observer that is no model, with the usual limits."""
    return ObserverDeps(open=lambda: observer)


def by_reflector(reflector: Reflector, policy: Policy = Policy(), *, is_model: bool = False) -> ReflectorDeps:  # noqa: B008
    """A reflector by this policy."""
    return ReflectorDeps(open=lambda: reflector, policy=policy, is_model=is_model)


def by_model(observer: Observer) -> ObserverDeps:
    """An observer in the place of a model, which may fail; it is shown a batch at once."""
    return ObserverDeps(open=lambda: observer, model=_Model(observer))


class _Model:
    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def observe(self, batch: Batch) -> Observed:
        return self._observer.observe(batch)

    def begin(self, batch: Batch) -> _Reading:
        return _Reading(self._observer)


class _Reading:
    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._observed = Observed(drafts=())

    @property
    def may_ask(self) -> bool:
        return True

    def read(self, part: Batch, *, warmer: bool = False) -> None:
        self._observed = self._observer.observe(part)

    def skip(self, part: Batch) -> None:
        raise AssertionError("no rules stand in")

    def observed(self) -> Observed:
        return self._observed
