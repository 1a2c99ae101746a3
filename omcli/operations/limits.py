"""Limits on what models may cost, in a day or in a month."""

from __future__ import annotations

from omcli.base.record import record
from omcli.llm.model import Spent

_OF_A_DAY, _OF_A_MONTH = len("2026-02-10"), len("2026-02")


@record
class Limit:
    """What models may come to in a day or in a month."""

    name: str
    """As the settings call it: `limits.day_tokens`, `limits.soft_month_cost`."""
    most: float
    """Tokens, or US dollars."""
    is_cost: bool
    of_month: bool
    """Of the calendar month, else of the day; both in UTC."""
    is_hard: bool
    """Refuses calls; a soft one only says so."""

    @property
    def period(self) -> str:
        """Which day or month, in words."""
        return "this month" if self.of_month else "today"

    def since(self, now: str) -> str:
        """Where the day or month of an instant begins."""
        return now[:_OF_A_MONTH] + "-01" if self.of_month else now[:_OF_A_DAY]

    def used(self, spent: Spent) -> float:
        """How much of it is used, where so much was spent in its period."""
        return spent.cost if self.is_cost else spent.tokens

    def reached(self, spent: Spent) -> str | None:
        """That it has been reached, in words; None where it has not."""
        used = self.used(spent)
        if used < self.most:
            return None
        so_far = f"${used:.2f} of ${self.most:.2f}" if self.is_cost else f"{used:.0f} of {self.most:.0f} tokens"
        return f"`{self.name}` is reached: {so_far} {self.period}"
