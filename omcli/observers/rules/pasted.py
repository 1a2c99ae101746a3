"""Logs, stack traces, diffs, tables and data that somebody pasted into a prompt, told apart from what they say."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.counts import counted
from omcli.memory.patterns import lazily
from omcli.memory.text import one_line
from omcli.observers.rules import shell
from omcli.observers.rules.wording import cut

_ROW_CHARACTERS = 400
"""What is kept of all that a prompt pastes."""
_LINE_SHOWN = 300
"""Characters of a line in which it shows what it is."""
_WORTH_PARTING = 200
"""Characters below which a single line stays where it is: it is quoted, not pasted."""
_ESCAPES = 3
"""Escaped line ends and quotes, and quoted keys, from which on a line is data."""
_MARKS = ("\\n", '\\"', '":', '"}', '"]')

_TRACE = lazily(r"^\s*(?:Traceback \(most recent call last\)|Exception in thread |panic: |goroutine \d+ \[)")
_FRAME = lazily(r"^(?:\s|File \"|at \S)")
_DIFF = lazily(r"^(?:diff --git |@@ -\d|(?:---|\+\+\+) (?:[ab]/|/dev/null))")
_DIFF_GOES_ON = lazily(r"^(?:[ +@\\-]|$|index |new file|deleted file|similarity |rename |old mode|new mode)")
_INDENTED = lazily(r"^ +(?![*+•·-]|\d{1,3}[.)])\S")
"""What is shown below a line, and no item of a list."""
_LINE = lazily(
    r"^\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b"  # a clock begins the lines of a log
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|npm ERR!)[\]: ]"
    r"|File \"[^\"]+\", line \d"
    r"|at \S+ \(\S+:\d+"
    r"|(?:[\w.]{1,80})?(?:Error|Exception)(?:: |$)"
    r"|(?:\([\w.\-]+\) ?)?[\w.\-]+@[\w.\-]+[:~ ]\S*\s*[$#%>](?:\s|\w|$)"  # the prompt of a shell
    r"|(?:\$|PS [A-Z]:\S*>) \S|[^➜❯]{0,60}[➜❯]\s"
    r")|\S\t+\S"  # cells of a table
)


def apart(text: str) -> tuple[str, list[str]]:
    """What of a text is said, and the lines that are pasted; none of those where it is but a short one."""
    said: list[str] = []
    pasted: list[str] = []
    goes_on = None
    for line in text.splitlines():
        shown = line[:_LINE_SHOWN]
        opens = _FRAME if _TRACE.match(shown) else _DIFF_GOES_ON if _DIFF.match(shown) else None
        is_line = bool(_LINE.search(shown)) or _is_escaped(line)
        if opens is None and goes_on is not None and not goes_on.match(shown):
            goes_on = None
        goes_on = opens or goes_on or (_INDENTED if is_line else None)
        is_pasted = goes_on is not None or is_line
        (pasted if is_pasted and line.strip() else said).append(line)
    if len(pasted) > 1 or sum(map(len, pasted)) > _WORTH_PARTING:
        return "\n".join(said), pasted
    return text, []


def _is_escaped(line: str) -> bool:
    return sum(map(line.count, _MARKS)) >= _ESCAPES


def told(pasted: Sequence[str]) -> str:
    """What pasted lines come to, on one line: their errors, else how they begin; and how many they are."""
    lines = [one_line(line) for line in pasted]
    trouble = shell.trouble("\n".join(lines), _ROW_CHARACTERS) if shell.reports_error("\n".join(lines)) else ""
    what = trouble if len(trouble) > 1 else cut(" · ".join(lines), _ROW_CHARACTERS)
    return f"{what} [{counted(len(lines))} pasted line{'s' if len(lines) > 1 else ''}]"
