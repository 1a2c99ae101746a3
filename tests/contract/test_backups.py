"""Promises of every store about copies of it: `memory.ports.Backups`."""

from __future__ import annotations

from omcli.memory.ports import Store


class TestBackups:
    """Copies of the whole store, a day apart."""

    def test_one_is_made_when_the_last_is_a_day_old(self, file_store: Store) -> None:
        """storage.md §6: at least 20 hours lie between two."""
        first, soon, later = "2026-03-01T04:00:00.000Z", "2026-03-01T23:00:00.000Z", "2026-03-02T00:00:00.000Z"
        assert file_store.backups.is_due(now=first)
        assert file_store.backups.back_up(keep=3, now=first).path is not None
        assert file_store.backups.back_up(keep=3, now=soon).path is None
        assert not file_store.backups.is_due(now=soon)
        assert file_store.backups.back_up(keep=3, now=later).path is not None
