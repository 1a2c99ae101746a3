"""Search by words in two FTS5 tables that triggers keep, and search in all text for `om forget`."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from omcli.base import lazily
from omcli.memory.changes import RelatedRows
from omcli.memory.coverage import row_says
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Logged, LogQuery, Observation
from omcli.memory.ports import TextSearch
from omcli.memory.search import MessagePlace, Passage, SearchIndex, WordMatch
from omcli.memory.session import NO_PROJECT
from omcli.sqlite import codec, dialect, messages, rows, soft_delete
from omcli.sqlite.connection import is_index_complete, is_index_whole, marked_texts
from omcli.sqlite.dialect import PAGE, Table
from omcli.text.similarity import folded_text

_KEYS = {"messages": "seq", "observations": "position"}
"""Columns with the numbers that the indexes hold, by table."""
_INDEX_OF = {source: table for table, (source, _) in dialect.INDEXES.items()}
_LEAST_LETTERS = 3
"""A line is searched for a word if it contains the word's beginning: all but the last `_ENDING` letters, but at least
this many.
"""
_ENDING = 4
_LONGEST_PASSAGE = 300
"""Maximum number of characters of a passage, without the ellipses."""
_BEFORE_WORDS = 60
_MOST_LINES = 50
"""Maximum number of lines of a text that are compared."""
_LEADS = lazily(r"^#{1,6}\s|^\*\*[^*]*\*\*$|[:?]\W{0,3}$")
"""Matches Markdown headings, lines that are bold as a whole, and lines that end with a colon or a question mark, which
up to three marks such as `**` may follow.
"""
_REASON = lazily(r"(?i)\b(?:because|why|reasons?|since|due to|caused? by|weil|wegen|parce que?|porque|omdat)\b")
"""Matches a word that introduces a reason."""
_AROUND = ("\x02", "\x03")
_LATEST_ANSWER = 400
"""Number of messages of a session after a question or call among which to look for answers: more than an agent usually
needs for one.
"""
FOLDED = "\u00df\u0130\u0149\u017f\u01f0\u1e96-\u1e9a\u1e9e\u212a\ufb00-\ufb06"
"""Letters whose case-folded form contains ASCII letters: sharp s, ligatures, the kelvin sign and others."""
SEARCHABLE = lazily("[a-z0-9]+|[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")  # those that `LIKE` compares right
_MARKS = lazily("[\x02\x03]")
_MARKED = lazily("([^\x02]*)\x02([^\x03]*)\x03")


_ANSWERS = f"""
WITH given (seq, session, role, agent, call_id, last) AS MATERIALIZED (
    SELECT g.seq, g.session, g.role, g.agent, g.call_id, (SELECT max(seq) FROM
        (SELECT n.seq FROM messages AS n WHERE n.session = g.session AND n.seq > g.seq ORDER BY n.seq LIMIT :reach))
    FROM messages AS g WHERE {dialect.among("g.seq", ":seqs")} AND g.role IN ('user', 'call')),
asked AS MATERIALIZED (
    SELECT *, (SELECT min(n.seq) FROM messages AS n WHERE n.session = g.session AND n.seq > g.seq AND n.seq <= g.last
        AND n.role = 'user' AND n.agent IS g.agent) AS next FROM given AS g)
SELECT g.seq, a.seq FROM asked AS g JOIN messages AS a ON a.session = g.session AND a.agent IS g.agent
    AND a.seq > g.seq AND a.seq <= g.last
WHERE CASE g.role WHEN 'call' THEN a.role = 'result' AND a.call_id = g.call_id
    ELSE a.role = 'assistant' AND (g.next IS NULL OR a.seq < g.next) END
ORDER BY g.seq, a.seq
"""
_AROUND_GIVEN = f"""
SELECT n.seq FROM messages AS g JOIN messages AS n ON n.session = g.session
    AND n.seq >= (SELECT min(seq) FROM (SELECT b.seq FROM messages AS b
        WHERE b.session = g.session AND b.seq <= g.seq ORDER BY b.seq DESC LIMIT :reach + 1))
    AND n.seq <= (SELECT max(seq) FROM (SELECT a.seq FROM messages AS a
        WHERE a.session = g.session AND a.seq >= g.seq ORDER BY a.seq LIMIT :reach + 1))
WHERE {dialect.among("g.seq", ":seqs")}
"""


class IndexQuery(NamedTuple):
    """A table with a column of numbers, and the condition, with the value of its parameter, that a text has a word."""

    table: str
    number: str
    has_word: str
    value: str


class SqliteSearchIndex(Table, SearchIndex):
    """The index in the tables `message_words` and `row_words`."""

    def match(self, words: Sequence[str], query: LogQuery, *, most: int) -> tuple[WordMatch, ...]:
        with self._database.reading() as connection:
            bounds = [_range(connection, table, query.session) for table in ("messages", "observations")]
            session = () if query.session is None else (codec.session_number(connection, query.session),)
            return tuple(self._match(connection, word, bounds, session, most=most) for word in words)

    def size(self, query: LogQuery) -> int:
        with self._database.reading() as connection:
            found = (_range(connection, table, query.session) for table in ("messages", "observations"))
            return sum(last - first + 1 for first, last in found)

    def around(self, seqs: Iterable[int], query: LogQuery, *, reach: int) -> tuple[MessagePlace, ...]:
        conditions, values = message_clauses(query)
        with self._database.reading() as connection:
            found = dialect.execute(
                connection,
                "SELECT m.seq, m.session, m.role = 'user' AND m.agent IS NULL, m.role IN ('user', 'assistant'),"
                f" m.tokens, m.at, {conditions}"
                f" FROM messages AS m JOIN sessions AS s ON s.number = m.session WHERE m.seq IN ({_AROUND_GIVEN})"
                " ORDER BY m.session, m.seq",
                {**values, "seqs": dialect.as_list(seqs), "reach": reach},
            )
            return tuple(
                MessagePlace(
                    seq=seq,
                    session=session,
                    is_person=bool(is_person),
                    is_turn=bool(is_turn),
                    tokens=tokens,
                    at=at,
                    is_wanted=bool(is_wanted),
                )
                for seq, session, is_person, is_turn, tokens, at, is_wanted in found
            )

    def answered(self, seqs: Iterable[int]) -> Mapping[int, tuple[int, ...]]:
        found: dict[int, list[int]] = defaultdict(list)
        with self._database.reading() as connection:
            given = {"seqs": dialect.as_list(seqs), "reach": _LATEST_ANSWER}
            for asked, reply in connection.execute(_ANSWERS, given):
                found[asked].append(reply)
        return {asked: tuple(replies) for asked, replies in found.items()}

    def rows(self, positions: Iterable[int], query: LogQuery) -> tuple[Logged, ...]:
        with self._database.reading() as connection:
            return rows.by_query(connection, query, dialect.as_list(positions))

    def passages(
        self,
        texts: Sequence[str],
        words: Sequence[str],
        *,
        weights: Mapping[str, float] | None = None,
        why: bool = False,
    ) -> tuple[Passage, ...]:
        best: dict[int, tuple[float, Passage]] = {}
        beginnings = [(_beginning(word), 1.0 if weights is None else weights[word]) for word in words]
        lines = [(number, line) for number, text in enumerate(texts) for line in _lines(text, words)]
        for number, passage in _passages(lines, words):
            worth = _passage_worth(passage, beginnings, why=why)
            if number not in best or worth > best[number][0]:
                best[number] = worth, passage
        return tuple(
            best[number][1] if number in best else _passage(_first_line(text), ()) for number, text in enumerate(texts)
        )

    def _match(
        self,
        connection: sqlite3.Connection,
        word: str,
        bounds: Sequence[tuple[int, int]],
        session: tuple[int | None, ...],
        *,
        most: int,
    ) -> WordMatch:
        found, count = [], 0.0
        for (source, key), (first, last) in zip(_KEYS.items(), bounds, strict=True):
            lookup = (
                self._index_query(source, word)
                if word.isalnum()
                else IndexQuery(source, key, "instr(text, ?) > 0", word)
            )
            number = lookup.number
            of_session = f" AND (SELECT session FROM {source} AS s WHERE s.{key} = {lookup.table}.{number}) = ?"
            newest = connection.execute(
                f"SELECT {number} FROM {lookup.table} WHERE {lookup.has_word} AND {number} BETWEEN ? AND ?"
                f"{of_session if session else ''} ORDER BY {number} DESC LIMIT ?",
                (lookup.value, first, last, *session, most),
            )
            numbers = [number for (number,) in newest]
            searched = last - first + 1 if len(numbers) < most else last - numbers[-1] + 1
            count += len(numbers) * (last - first + 1) / searched if numbers else 0
            found.append(frozenset(numbers))
        return WordMatch(messages=found[0], rows=found[1], count=count)

    def _index_query(self, source: str, word: str) -> IndexQuery:
        """Return how a word of letters and digits is looked up among the texts of a table."""
        table, number, has_word = dialect.with_word(_INDEX_OF[source])
        return IndexQuery(table, number, has_word, _word_query([word]))

    def check(self, *, thoroughly: bool = False) -> None:
        with self._database.writing() if thoroughly else self._database.reading() as connection:
            for table in dialect.INDEXES:
                if not is_index_whole(connection, table) or (thoroughly and not is_index_complete(connection, table)):
                    raise dialect.index_damaged(self._database.path)

    def renew(self) -> None:
        self._database.renew_index()

    def mark_used(self, rows_used: Sequence[str], *, now: str) -> None:
        with self._database.writing() as connection:
            rows.mark_used(connection, rows_used, now=now)


def merge(connection: sqlite3.Connection) -> None:
    """Remove the words of deleted messages and rows from the file."""
    for table in dialect.INDEXES:
        dialect.merge_index(connection, table)


def _range(connection: sqlite3.Connection, table: str, session: str | None) -> tuple[int, int]:
    """Return the first and last number of the messages or rows of a session, or of all; (1, 0) if there are none."""
    key = _KEYS[table]
    where, values = ("", ()) if session is None else ("WHERE session = ?", (codec.session_number(connection, session),))
    first, last = (
        connection.execute(f"SELECT {end}({key}) FROM {table} {where}", values).fetchone()[0] for end in ("min", "max")
    )
    return (first, last) if first is not None else (1, 0)


def _word_query(words: Iterable[str]) -> str:
    """Return the query for any of these words. A single non-ASCII character also matches words that begin with it,
    because scripts without spaces are indexed as pairs of characters.
    """
    return " OR ".join(f'"{word}"{"*" if len(word) == 1 and not word.isascii() else ""}' for word in words)


def message_clauses(query: LogQuery) -> tuple[str, dict[str, object]]:
    """Return the expression that is true for messages that a query selects, and its parameters."""
    conditions = ["TRUE"]
    if query.session is not None:
        conditions.append("s.id = :session")
    if query.other_than is not None:
        conditions.append("s.id <> :other_than")
    if query.project == NO_PROJECT:
        conditions.append("s.cwd IS NULL")
    elif query.project is not None:
        conditions.append("s.cwd = :project")
    if query.author is not None:
        conditions.append("s.author IN (SELECT a.number FROM authors AS a WHERE a.name = :author)")
    if query.since is not None:
        conditions.append("m.at >= :since")
    if query.until is not None:
        conditions.append("m.at < :until")
    names = ("session", "other_than", "project", "author", "since", "until")
    return " AND ".join(conditions), {name: getattr(query, name) for name in names}


# ---- passages


def _lines(text: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the first `_MOST_LINES` lines of a text that may contain a form of one of the words, each as `_with_rest`
    returns it.
    """
    beginnings = [*map(_beginning, words)]
    lines = text.splitlines()
    may_have = (at for at, line in enumerate(lines) if any(beginning in _folded(line) for beginning in beginnings))
    for at in islice(may_have, _MOST_LINES):
        yield _MARKS.sub(" ", _with_rest(lines, at))


def _with_rest(lines: Sequence[str], at: int) -> str:
    """Return a line. If it matches `_LEADS`, join it with the lines after it, until the next heading or until it is
    longer than a passage.
    """
    found = lines[at].strip()
    if _LEADS.search(found):
        for line in islice(lines, at + 1, at + 1 + _MOST_LINES):
            if len(found) > _LONGEST_PASSAGE or line.lstrip().startswith("#"):
                break
            found = f"{found} {line.strip()}".rstrip()
    return found


def _beginning(word: str) -> str:
    """Return what the forms of a word have in common, because they differ only at the end."""
    folded = _folded(word)
    return folded[: max(_LEAST_LETTERS, len(folded) - _ENDING)]


def _folded(text: str) -> str:
    """Return text in lower case without accents."""
    if text.isascii():
        return text.lower()
    from unicodedata import combining, normalize  # noqa: PLC0415 - most text is ASCII

    return "".join(char for char in normalize("NFKD", text.lower()) if not combining(char))


def _passages(lines: Sequence[tuple[int, str]], words: Sequence[str]) -> Iterator[tuple[int, Passage]]:
    """Yield the lines as passages, in order, with the numbers given. Lines that contain none of the words are left out,
    unless one of the words is a symbol.
    """
    if not all(map(str.isalnum, words)):
        yield from ((number, _passage(line, list(_found(line, words)))) for number, line in lines)
        return
    indexed = [dialect.index_text(line) for _, line in lines]
    for at, marked in marked_texts(indexed, _word_query(words), marks=_AROUND) if lines else ():
        number, line = lines[at]
        yield number, _passage(line, list(_marked(marked) if indexed[at] == line else _found(line, words)))


def _passage(line: str, spans: Sequence[tuple[int, int]]) -> Passage:
    """Return a line with the places of words. Of a long line only the part around the first word is kept."""
    begins = max(0, min((begin for begin, _ in spans), default=0) - _BEFORE_WORDS)
    begins = max(0, min(begins, len(line) - _LONGEST_PASSAGE))
    part = line[begins : begins + _LONGEST_PASSAGE]
    before, after = ("…" if begins else "", "…" if begins + len(part) < len(line) else "")
    shift = len(before) - begins
    kept = ((begin + shift, end + shift) for begin, end in spans if begins <= begin and end <= begins + len(part))
    return Passage(text=f"{before}{part}{after}", words=tuple(kept))


def _marked(marked: str) -> Iterator[tuple[int, int]]:
    """Yield the beginnings and ends of the marked words in a line, counted without the marks."""
    at = 0
    for before, word in _MARKED.findall(marked):
        at += len(before)
        yield at, at + len(word)
        at += len(word)


def _found(line: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each occurrence of the words, also inside others. This is for lines to which the
    marks of FTS5 do not apply: with symbols, names in camel case, or scripts without spaces.
    """
    for word in words:
        yield from (found.span() for found in re.finditer(re.escape(word), line, re.IGNORECASE))


def _passage_worth(passage: Passage, beginnings: Sequence[tuple[str, float]], *, why: bool) -> float:
    """Return the weight of the words that a passage contains, each once and in any form. If it is to say `why`, a
    reason weighs as much as the heaviest word.
    """
    forms = {_folded(passage.text[begins:ends]) for begins, ends in passage.words}
    worth = sum(weight for beginning, weight in beginnings if any(form.startswith(beginning) for form in forms))
    gives_reason = why and _REASON.search(passage.text)
    return worth + (max(weight for _, weight in beginnings) if gives_reason else 0)


def _first_line(text: str) -> str:
    return _with_rest(text.strip().splitlines() or [""], 0)


# ---- all text

_GIVEN = f"""given (position, id, superseded_by, supports) AS (
    SELECT position, id, superseded_by, NULL FROM observations WHERE {dialect.among("position", ":given")} UNION ALL
    SELECT position, id, superseded_by, supports FROM aside_observations WHERE {dialect.among("position", ":given")})
"""


_OF_MESSAGES = f"""UNION SELECT position, superseded_by FROM observations
    WHERE position IN (SELECT observation FROM observation_sources WHERE {dialect.among("message", ":messages")})"""
DERIVED = f"""
    WITH RECURSIVE {_GIVEN}, begun (position, successor) AS (SELECT position, superseded_by FROM given {{}}),
    of_it (position, successor) AS (SELECT position, successor FROM begun UNION %s)
    SELECT position FROM of_it EXCEPT SELECT position FROM given
"""
"""Query for rows derived from the given rows or messages, directly or through other rows. The step from one row to the
next is missing.
"""
_STEPS = f"""
    SELECT o.position, o.superseded_by FROM of_it JOIN observation_supports AS s ON s.supported = of_it.position
        JOIN observations AS o ON o.position = s.observation
    UNION SELECT o.position, o.superseded_by FROM of_it
        JOIN observations AS o ON {codec.same_id("o.id", "of_it.successor")}
"""


class SqliteTextSearch(Table, TextSearch):
    """Search that reads all text, because the index finds words, and not parts of them."""

    _derived = DERIVED % _STEPS

    def messages(self, text: str) -> tuple[KeptMessage, ...]:
        may, values = self._may_match(("text",), text)
        with self._database.reading() as connection:
            visible, hidden = (
                [
                    seq
                    for seq, said in connection.execute(f"SELECT seq, text FROM {table} WHERE {may}", values)
                    if text in folded_text(said)
                ]
                for table in ("messages", "(SELECT * FROM aside_messages WHERE NOT erased) AS hidden")
            )
            found = (*messages.by_seq(connection, visible), *messages.hidden_by_seq(connection, hidden))
        return tuple(sorted(found, key=lambda kept: kept.seq))

    def rows(self, text: str) -> tuple[Observation, ...]:
        may, values = self._may_match(("text", "tags", "metadata"), text)
        query = f"SELECT position FROM {{}} WHERE {may} ORDER BY position"
        with self._database.reading() as connection:
            visible = connection.execute(query.format("observations"), values)
            hidden = [place for (place,) in connection.execute(query.format("aside_observations"), values)]
            found = chain(
                (row for page in iter(lambda: visible.fetchmany(PAGE), []) for row in _by_position(connection, page)),
                (logged.observation for logged in soft_delete.by_position(connection, hidden)),
            )
            return tuple(row for row in found if row_says(row, text))

    def _may_match(self, columns: Sequence[str], text: str) -> tuple[str, dict[str, str]]:
        """Return a condition and its parameters. It is true for each row with `text`, which is in lower case, in one of
        the columns, and usually for few others.

        It searches for the longest word of `SEARCHABLE` characters. Rows with letters that need case folding, or a NUL,
        at which `LIKE` stops, match too. If the text has no such word, rows with a NUL or non-ASCII characters match
        or, if the text is ASCII, all rows. Both make a row longer in bytes than by `length`, which counts characters up
        to a NUL.
        """
        words = sorted(SEARCHABLE.findall(text), key=len)
        if not words and text.isascii():
            return "TRUE", {}
        match = "length(CAST({0} AS BLOB)) > length({0})"
        if words:
            match = f"({{0}} LIKE :word OR {match} AND {dialect.HAS_FOLDED})"
        word = words[-1][:1000] if words else ""  # `LIKE` refuses very long patterns
        values = {"word": f"%{word}%", "folded": f"*[{FOLDED}]*"}
        return f"({' OR '.join(match.format(column) for column in columns)})", values

    def related(self, rows: Sequence[str], messages: Sequence[int]) -> RelatedRows:
        with self._database.reading() as connection:
            given = [position for row_id in rows for position in _position(connection, row_id)]
            values = {"given": dialect.as_list(given), "messages": dialect.as_list(messages)}
            derived = self._derived.format(_OF_MESSAGES if messages else "")
            return RelatedRows(
                derived=_by_position(connection, connection.execute(derived, values)),
                replaced=_by_position(connection, connection.execute(_replaced(), values)),
            )


def _replaced() -> str:
    """Return the query for rows that the given rows replaced, except the rows they were made from."""
    made_of = dialect.each("coalesce(gone.made_of, '[]')")
    return (
        f"WITH RECURSIVE {_GIVEN}, gone (position, id, made_of) AS ("
        " SELECT position, id, supports FROM given UNION"
        " SELECT o.position, o.id, NULL FROM gone JOIN observations AS o ON o.superseded_by = gone.id"
        f" WHERE o.position NOT IN ({made_of}) AND NOT EXISTS"
        " (SELECT 1 FROM observation_supports AS s WHERE s.observation = gone.position AND s.supported = o.position)"
        ") SELECT position FROM gone EXCEPT SELECT position FROM given"
    )


def _position(connection: sqlite3.Connection, row_id: str) -> list[int]:
    """Return the log position of a row, hidden or not, as a list that is empty if the row is unknown."""
    values = codec.id_values(codec.packed(row_id))
    query = " UNION ALL ".join(
        f"SELECT position FROM {table} WHERE {codec.id_is()}" for table in ("observations", "aside_observations")
    )
    return [position for (position,) in connection.execute(query, values * 2)]


def _by_position(connection: sqlite3.Connection, found: Iterable[tuple[int]]) -> tuple[Observation, ...]:
    positions = dialect.as_list(position for (position,) in found)
    return tuple(logged.observation for logged in rows.by_position(connection, dialect.each(), (positions,)))
