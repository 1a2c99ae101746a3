"""When a job runs, and what cannot be scheduled."""

from __future__ import annotations

from pathlib import Path

import pytest

from omcli.base.errors import BadUsage
from omcli.schedules.cron import Cron
from omcli.schedules.job import Daily, Every, Job, When, check, daily, every
from omcli.schedules.launchd import Launchd
from omcli.schedules.systemd import Systemd, quoted


def job(when: When, *command: str) -> Job:
    name = "tick" if isinstance(when, Every) else "consolidate"
    return Job(name=name, command=command or ("/bin/om", name), when=when, keys=Path("/k"), logs=Path("/l"))


@pytest.mark.parametrize(
    ("said", "meant"), [("03:00", (3, 0)), ("3:05", (3, 5)), ("23:59", (23, 59)), ("00:00", (0, 0))]
)
def test_a_time_of_day(said: str, meant: tuple[int, int]) -> None:
    found = daily(said)
    assert (found.hour, found.minute) == meant


@pytest.mark.parametrize("said", ["", "3", "24:00", "03:60", "3:5", "03:00:00", " 03:00", "٠٣:٠٠", "03:00\n", "-1:00"])
def test_an_invalid_time_of_day_is_refused(said: str) -> None:
    with pytest.raises(BadUsage, match="not a valid time"):
        daily(said)


@pytest.mark.parametrize(("said", "minutes"), [("1m", 1), ("15m", 15), ("60m", 60), ("2h", 120), ("24h", 1440)])
def test_an_interval(said: str, minutes: int) -> None:
    assert every(said).minutes == minutes


@pytest.mark.parametrize("said", ["", "0m", "7m", "90m", "5h", "25h", "48h", "15", "15s", "1d", "99999m", "１５m"])
def test_an_interval_has_to_divide_an_hour_or_a_day(said: str) -> None:
    """cron begins anew with every hour and day: 7 minutes apart are 4 at its end."""
    with pytest.raises(BadUsage, match="not a valid interval"):
        every(said)


@pytest.mark.parametrize(
    ("when", "cron", "systemd", "launchd"),
    [
        (Daily(hour=3, minute=7), "7 3 * * * ", "OnCalendar=*-*-* 03:07:00\n", "<key>Minute</key>\n\t\t<integer>7<"),
        (every("15m"), "*/15 * * * * ", "OnCalendar=*-*-* *:00/15:00\n", "<integer>900<"),
        (every("6h"), "0 */6 * * * ", "OnCalendar=*-*-* 00/6:00:00\n", "<integer>21600<"),
        (every("24h"), "0 */24 * * * ", "OnCalendar=*-*-* 00/24:00:00\n", "<integer>86400<"),
    ],
)
def test_each_scheduler_gets_its_own_notation(when: When, cron: str, systemd: str, launchd: str) -> None:
    folder = Path("/u")
    assert Cron().parts(job(when))[0].text.startswith(cron)
    assert systemd in Systemd(folder).parts(job(when))[1].text
    assert launchd in Launchd(folder).parts(job(when))[0].text


def test_characters_special_to_systemd_are_escaped() -> None:
    """Specifiers, variables, quotes and backslashes; a program's own path holds no variables."""
    assert quoted('a b%c$d"e\\f;') == '"a b%%c$$d\\"e\\\\f;"'
    assert quoted("/a$b%c", is_program=True) == '"/a$b%%c"'


@pytest.mark.parametrize("name", ["/a\nb", "/a\tb", "/a\x7f", "/a\udcff"])
def test_unprintable_names_are_refused(name: str) -> None:
    """A line break would be a line of its own in a crontab."""
    with pytest.raises(BadUsage, match="cannot be part"):
        check(job(Daily(hour=3, minute=0), "/bin/om", "consolidate", "--db", name))
