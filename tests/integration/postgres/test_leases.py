"""Leases of machines whose clocks differ."""

from __future__ import annotations

import time

import pytest

from omcli.base.errors import LaneTaken
from omcli.memory.ports import Lane
from omcli.postgres import PostgresStore
from omcli.postgres.differences import PostgresLeases
from omcli.text.instants import later

HOUR, LEASE = 3600.0, 300.0


def test_a_lease_ends_by_the_servers_clock_however_wrong_the_holders_clock_is(postgres_url: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())

    def claim(leases: PostgresLeases, owner: str, at: str) -> None:
        leases.claim("s", Lane.OBSERVE, owner=owner, now=at, expires_at=later(at, LEASE))

    with PostgresStore.open(postgres_url, wait=1) as store:
        ahead = PostgresLeases(store.database, is_gone=lambda _: False, clock=lambda: time.time() + HOUR)
        right = PostgresLeases(store.database, is_gone=lambda _: False)
        claim(ahead, "other:1:1", later(now, HOUR))
        with pytest.raises(LaneTaken):
            claim(right, "me:1:1", now)
        claim(right, "me:1:1", later(now, LEASE + 60))
        with pytest.raises(LaneTaken):
            claim(ahead, "other:1:1", later(now, HOUR + LEASE + 60))
