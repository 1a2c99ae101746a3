"""Backups by their names: when one is due, and which go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.sqlite.backups import backups_among, is_due, label, surplus

NOW = "2026-03-10T04:00:00.000Z"
AT = datetime(2026, 3, 10, 4, tzinfo=UTC)
TIMES = st.lists(st.integers(-30 * 24, 48).map(lambda hours: AT + timedelta(hours=hours)), max_size=9)


def named(*times: datetime) -> list[str]:
    """Names of backups of these moments."""
    return [f"om.db.{label(f'{time.isoformat()[:19]}.000Z')}.bak" for time in times]


def test_what_is_no_copy_of_the_store_is_none_of_its_backups() -> None:
    """Neither copies made before a migration, nor half of one, nor those of another store, nor days that never were."""
    names = [
        "om.db.2026-03-09T040000Z.bak", "om.db.2026-03-09T040000Z-2.bak", "om.db", "om.db-wal", "om.db.v7.bak",
        "om.db.2026-03-09T040000Z.bak.partial", "other.db.2026-03-09T040000Z.bak", "om.db.2026-13-09T040000Z.bak",
        "om.db.2026-03-09T040000Z.bak ", "xom.db.2026-03-09T040000Z.bak", "om.db.٢٠٢٦-03-09T040000Z.bak",
    ]  # fmt: skip
    assert [backup.name for backup in backups_among(names, "om.db")] == names[:2]


@pytest.mark.parametrize(("hours", "due"), [(0, False), (19.9, False), (20, True), (24, True), (-1, True)])
def test_one_is_due_a_day_after_the_last(hours: float, due: bool) -> None:
    """20 hours: a daily job never skips a day. One from the future says nothing."""
    last = AT - timedelta(hours=hours)
    assert is_due(backups_among(named(last), "om.db"), NOW) is due


@given(times=TIMES, keep=st.integers(1, 6))
def test_the_newest_stay(times: list[datetime], keep: int) -> None:
    """As many as are kept, never fewer; who is removed is older than all that stay, or from a clock that was wrong."""
    found = backups_among(set(named(*times)), "om.db")
    gone = surplus(found, keep=keep, now=NOW)
    left = [backup for backup in found if backup not in gone]
    assert len(left) == min(keep, len(found))
    now = AT.replace(tzinfo=None)
    past = [backup.at for backup in left if backup.at <= now]
    assert all(backup.at > now or not past or backup.at < min(past) for backup in gone)
