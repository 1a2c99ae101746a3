"""Promises of every store about the owners of lanes: `memory.ports.Leases`."""

from __future__ import annotations

import pytest

from omcli.base.errors import LaneTaken
from omcli.memory.ports import Lane, Store
from tests.contract.conftest import MakeStore
from tests.material import LATER, NOW


class TestLeases:
    ME, OTHER = "host:4711:1", "host:4712:1"

    def claim(self, store: Store, owner: str, *, now: str = NOW, until: str = LATER, lane: Lane = Lane.OBSERVE) -> None:
        store.leases.claim("s", lane, owner=owner, now=now, expires_at=until)

    def test_a_lane_is_held_by_one_and_the_other_is_told_by_whom(self, store: Store) -> None:
        """T75: the loser is told, and loses nothing."""
        self.claim(store, self.ME)
        with pytest.raises(LaneTaken, match="4711"):
            self.claim(store, self.OTHER)

    def test_the_owner_may_extend_its_lease(self, store: Store) -> None:
        self.claim(store, self.ME, until=LATER)
        self.claim(store, self.ME, until="2026-03-02T12:00:00.000Z")
        with pytest.raises(LaneTaken):
            self.claim(store, self.OTHER, now=LATER, until="2026-03-02T12:00:00.000Z")

    def test_lanes_and_sessions_are_held_apart(self, store: Store) -> None:
        self.claim(store, self.ME)
        self.claim(store, self.OTHER, lane=Lane.REFLECT)
        store.leases.claim("t", Lane.OBSERVE, owner=self.OTHER, now=NOW, expires_at=LATER)

    def test_an_expired_lease_is_taken_over(self, store: Store) -> None:
        """F24: no mark of a crashed program stays for ever."""
        self.claim(store, self.ME, until=LATER)
        self.claim(store, self.OTHER, now=LATER, until="2026-03-02T12:00:00.000Z")

    def test_a_lease_taken_under_a_clock_that_was_ahead_ends_when_one_of_ours_would(self, store: Store) -> None:
        """T75, F24: a holder that nobody can ask, on another host, died before the clock was put back four years."""
        self.claim(store, self.OTHER, now="2030-01-01T00:00:00.000Z", until="2030-01-01T00:10:00.000Z")
        for now, until in (("09:00", "09:10"), ("09:09", "09:19")):
            with pytest.raises(LaneTaken):
                self.claim(store, self.ME, now=f"2026-03-02T{now}:00.000Z", until=f"2026-03-02T{until}:00.000Z")
        self.claim(store, self.ME, now="2026-03-02T09:10:00.000Z", until="2026-03-02T09:20:00.000Z")

    def test_a_lease_that_ends_soon_is_not_made_longer_by_those_it_keeps_out(self, store: Store) -> None:
        self.claim(store, self.OTHER, until="2026-03-02T10:01:00.000Z")
        with pytest.raises(LaneTaken):
            self.claim(store, self.ME, until=LATER)
        self.claim(store, self.ME, now="2026-03-02T10:01:00.000Z")

    def test_a_lease_whose_owner_is_gone_is_taken_over(self, make_store: MakeStore) -> None:
        """F23, F24: the lease names its real holder, and ends with it."""
        store = make_store(lambda owner: owner == self.ME)
        self.claim(store, self.ME)
        self.claim(store, self.OTHER)
        with pytest.raises(LaneTaken, match="4712"):
            self.claim(store, "host:4713:1")

    def test_a_lease_given_back_is_free(self, store: Store) -> None:
        self.claim(store, self.ME)
        store.leases.release("s", Lane.OBSERVE, owner=self.ME)
        self.claim(store, self.OTHER)

    def test_nobody_gives_back_the_lease_of_another(self, store: Store) -> None:
        self.claim(store, self.ME)
        store.leases.release("s", Lane.OBSERVE, owner=self.OTHER)
        store.leases.release("unknown", Lane.OBSERVE, owner=self.OTHER)
        with pytest.raises(LaneTaken):
            self.claim(store, self.OTHER)

    def test_a_lease_makes_no_session(self, store: Store) -> None:
        self.claim(store, self.ME)
        assert store.sessions.find("s") is None
        assert store.sessions.summaries() == ()
