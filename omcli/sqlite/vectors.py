"""Vectors of texts, and exact search among them: all vectors of a model are read and compared by numpy."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from omcli.base.errors import BadConfiguration, Unusable
from omcli.base.record import replace
from omcli.memory.observation import LogQuery
from omcli.memory.search import Nearest, TextPlace, Vectors, VectorStatus
from omcli.recall.ranking import pieces
from omcli.sqlite import dialect, rows
from omcli.sqlite.dialect import Table
from omcli.sqlite.search import message_clauses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_READ = 1_024
"""Number of vectors that are compared at a time. More would not fit into a processor's caches and would take longer."""
_LOOKED_UP = 500
"""Number of vectors whose messages and rows are looked up at a time, the nearest first."""
_FLOOR = 0.2
"""A vector is near if its cosine is at least a fifth of the way from the average of the others to 1, because the usual
height of cosines depends on the model.
"""
_LARGEST = 127
_SAID = f"m.role IN ('user', 'assistant') AND m.counted AND {dialect.has_text('m.text')}"
"""Condition for messages that have vectors: counted prompts, replies and notes with text, but no calls and results."""
_ROW_SAID = f"o.visible AND {dialect.has_text('o.text')}"
_MISSING_MESSAGES = (
    f"FROM messages AS m WHERE {_SAID}"
    " AND NOT EXISTS (SELECT 1 FROM message_vectors AS v WHERE v.seq = m.seq AND v.model = :model)"
)
_MISSING_ROWS = (
    f"FROM observations AS o WHERE {_ROW_SAID}"
    " AND NOT EXISTS (SELECT 1 FROM row_vectors AS v WHERE v.position = o.position AND v.model = :model)"
)
_UNUSED = "FROM vectors WHERE number NOT IN (SELECT vector FROM message_vectors UNION SELECT vector FROM row_vectors)"


class Model(NamedTuple):
    number: int
    dimensions: int | None


_NONE = Model(0, None)
"""A model without vectors."""


class SqliteVectors(Table, Vectors):
    """Vectors in the table `vectors`, linked by `message_vectors` and `row_vectors`."""

    def length(self, model: str) -> int | None:
        with self._database.reading() as connection:
            return _model(connection, model).dimensions

    def missing(self, model: str) -> tuple[TextPlace, ...]:
        with self._database.reading() as connection:
            values = {"model": _model(connection, model).number}
            of_rows = connection.execute(
                f"SELECT o.position {_MISSING_ROWS}"
                " ORDER BY CASE o.priority WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, o.position DESC",
                values,
            ).fetchall()
            of_messages = connection.execute(f"SELECT m.seq {_MISSING_MESSAGES} ORDER BY m.seq DESC", values)
            found = ((True, each) for (each,) in of_rows), ((False, each) for (each,) in of_messages)
            return tuple(TextPlace(is_row=is_row, number=number) for places in found for is_row, number in places)

    def texts(self, places: Sequence[TextPlace]) -> Mapping[TextPlace, tuple[str, ...]]:
        with self._database.reading() as connection:
            return _texts(connection, places)

    def known(self, model: str, texts: Iterable[str]) -> frozenset[str]:
        with self._database.reading() as connection:
            number = _model(connection, model).number
            return frozenset(text for text in texts if _vector_of(connection, text, number) is not None)

    def put(self, model: str, places: Sequence[TextPlace], vectors: Mapping[str, Sequence[float]]) -> int:
        with self._database.writing() as connection:
            number = _model(connection, model).number
            for dimensions in {len(vector) for vector in vectors.values()}:
                number = _add_model(connection, model, dimensions)
            linked = 0
            for place, parts in _texts(connection, places).items():
                for part in parts:
                    if part in vectors:
                        _add_vector(connection, part, vectors[part], number)
                found = [_vector_of(connection, part, number) for part in parts]
                if None not in found:
                    _put(connection, place, found, number)
                    linked += 1
            return linked

    def nearest(self, model: str, vector: Sequence[float], query: LogQuery, *, most: int) -> Nearest:
        try:
            import numpy as np  # noqa: PLC0415 - most stores have no vectors
        except ImportError:
            raise BadConfiguration("numpy is not installed", hint="pip install 'omcli[embeddings]'") from None

        with self._database.reading() as connection:
            found = _model(connection, model)
            if found.dimensions != len(vector):
                raise Unusable(f"no vectors of {model} with {len(vector)} dimensions yet", hint="`om embed` makes them")
            wanted = np.asarray(vector, np.float32)
            return self._nearest(connection, found, wanted / (float(np.linalg.norm(wanted)) or 1.0), query, most=most)

    def _nearest(
        self, connection: sqlite3.Connection, model: Model, wanted: Floats, query: LogQuery, *, most: int
    ) -> Nearest:
        """Return the messages and rows nearest to a unit vector."""
        numbers, cosines = match(connection, vectors_of(model), (), wanted)
        ranked = rank(numbers, cosines, limit(cosines, among=cosines))
        return Nearest(
            messages=nearest_of(ranked, lambda which: messages_of(connection, which, query), most=most),
            rows=nearest_of(ranked, lambda which: rows_of(connection, which, query), most=most),
        )

    def status(self, model: str) -> VectorStatus:
        with self._database.reading() as connection:
            found = _model(connection, model)
            values = {"model": found.number}

            def count(query: str) -> int:
                (number,) = connection.execute(f"SELECT {query}", values).fetchone()
                return int(number)

            return VectorStatus(
                dimensions=found.dimensions,
                messages=count("count(DISTINCT seq) FROM message_vectors WHERE model = :model"),
                rows=count("count(DISTINCT position) FROM row_vectors WHERE model = :model"),
                missing_messages=count(f"count(*) {_MISSING_MESSAGES}"),
                missing_rows=count(f"count(*) {_MISSING_ROWS}"),
                size=count("coalesce(sum(length(vector)), 0) FROM vectors"),
            )

    def drop_unused(self) -> int:
        with self._database.writing() as connection:
            return drop_unused(connection)


def drop_unused(connection: sqlite3.Connection) -> int:
    """Delete the vectors that no message or row is linked to, because they reveal something about deleted text, and
    return their number.
    """
    return connection.execute(f"DELETE {_UNUSED}").rowcount


# ---- models and texts


def _model(connection: sqlite3.Connection, name: str) -> Model:
    found = dialect.execute(
        connection,
        "SELECT number, dimensions FROM vector_models WHERE name = ? ORDER BY number DESC LIMIT 1",
        (name,),
    ).fetchone()
    return Model(*found) if found else _NONE


def _add_model(connection: sqlite3.Connection, name: str, dimensions: int) -> int:
    """Return the number of a model with this many dimensions. If the model is new, or its latest entry has another
    number of dimensions, add an entry without vectors, in place of any former one with this many.
    """
    found = _model(connection, name)
    if found.dimensions == dimensions:
        return found.number
    dialect.execute(
        connection, "DELETE FROM vector_models WHERE name = ? AND dimensions = ?", (name, dimensions)
    )  # from before it had others
    (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM vector_models").fetchone()
    return dialect.insert(connection, "vector_models", {"number": last + 1, "name": name, "dimensions": dimensions})


def _texts(connection: sqlite3.Connection, places: Sequence[TextPlace]) -> Mapping[TextPlace, tuple[str, ...]]:
    found: dict[TextPlace, tuple[str, ...]] = {}
    of_rows = f"SELECT o.position, o.text FROM observations AS o WHERE {_ROW_SAID} AND {dialect.among('o.position')}"
    of_messages = "SELECT m.seq, coalesce(m.name || ': ', '') || m.text FROM messages AS m"
    of_messages = f"{of_messages} WHERE {_SAID} AND {dialect.among('m.seq')}"
    for is_row, query in ((True, of_rows), (False, of_messages)):
        which = dialect.as_list(place.number for place in places if place.is_row is is_row)
        for number, text in connection.execute(query, (which,)):
            found[TextPlace(is_row=is_row, number=number)] = tuple(pieces(text))
    return {place: found[place] for place in places if place in found}


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _vector_of(connection: sqlite3.Connection, text: str, model: int) -> int | None:
    """Return the number of the vector that a text has, or None."""
    found = connection.execute(
        "SELECT number FROM vectors WHERE digest = ? AND model = ?", (_digest(text), model)
    ).fetchone()
    return int(found["number"]) if found else None


def _add_vector(connection: sqlite3.Connection, text: str, vector: Sequence[float], model: int) -> None:
    """Store a vector. Its largest component becomes 127, which changes cosines by less than a hundredth."""
    largest = max(map(abs, vector), default=0.0) or 1.0
    whole = array("b", (round(each / largest * _LARGEST) for each in vector))
    scale = 1 / (sum(each * each for each in whole) ** 0.5 or 1.0)
    connection.execute(
        "INSERT INTO vectors (model, digest, scale, vector) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (digest, model) DO UPDATE SET scale = excluded.scale, vector = excluded.vector",
        (model, _digest(text), scale, whole.tobytes()),
    )


def _put(connection: sqlite3.Connection, place: TextPlace, vectors: Iterable[int | None], model: int) -> None:
    """Link a message or row to the vectors of its parts, and remove its earlier links."""
    table, key = ("row_vectors", "position") if place.is_row else ("message_vectors", "seq")
    connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (place.number,))
    connection.executemany(
        f"INSERT INTO {table} ({key}, part, model, vector) VALUES (?, ?, ?, ?)",
        ((place.number, part, model, vector) for part, vector in enumerate(vectors)),
    )


# ---- search


def vectors_of(model: Model) -> str:
    """Return the part of a query that selects a model's vectors. An index of them has the same condition."""
    return f"FROM vectors AS n WHERE n.model = {model.number} AND length(n.vector) = {model.dimensions}"


def match(
    connection: sqlite3.Connection, source: str, values: dialect.Values, wanted: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Return the numbers of the vectors that a query selects, and their cosine similarities to a unit vector."""
    import numpy as np  # noqa: PLC0415

    numbers: list[int] = []
    cosines: list[Floats] = [np.empty(0, np.float32)]
    cursor = connection.cursor()
    cursor.row_factory = None  # plain tuples, because there may be a hundred thousand
    cursor.execute(f"SELECT n.number, n.scale, n.vector {source}", values)
    while page := cursor.fetchmany(_READ):
        found, scales, vectors = zip(*page, strict=True)
        matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(len(page), wanted.size)
        cosines.append(matrix.astype(np.float32) @ wanted * np.asarray(scales, np.float32))
        numbers += found
    return np.asarray(numbers, np.int64), np.concatenate(cosines)


def limit(cosines: Floats, *, among: Floats) -> Floats:
    """Return, for each cosine, the least value at which it counts as near: `_FLOOR` of the way from the mean of the
    other cosines in `among` to 1.
    """
    others: Floats = (among.sum() - cosines) / max(1, among.size - 1)
    return others * (1 - _FLOOR) + _FLOOR


def rank(numbers: NDArray[np.int64], cosines: Floats, least: Floats) -> list[tuple[int, float]]:
    """Return the numbers and cosines of the vectors that are near, the nearest first."""
    import numpy as np  # noqa: PLC0415

    order = np.flatnonzero(cosines >= least)
    order = order[np.argsort(-cosines[order], kind="stable")]
    return list(zip(numbers[order].tolist(), cosines[order].tolist(), strict=True))


def nearest_of(
    ranked: Sequence[tuple[int, float]], look_up: Callable[[str], Iterable[tuple[int, int]]], *, most: int
) -> dict[int, float]:
    """Return the cosines of the nearest messages or rows by number. `look_up` takes a list of vectors, and returns the
    messages or rows that are linked to them, each with the number of its vector.
    """
    found: dict[int, float] = {}
    waiting = iter(ranked)
    while len(found) < most and (page := dict(islice(waiting, _LOOKED_UP))):
        for number, vector in look_up(dialect.as_list(page)):
            found[number] = max(page[vector], found.get(number, -1.0))
    best = sorted(found.items(), key=lambda each: (each[1], each[0]), reverse=True)
    return dict(best[:most])


def messages_of(connection: sqlite3.Connection, vectors: str, query: LogQuery) -> Iterator[tuple[int, int]]:
    """Yield the `seq` of each message that a query selects and that is linked to one of these vectors, with that
    vector's number.
    """
    condition, values = message_clauses(query)
    yield from dialect.execute(
        connection,
        "SELECT v.seq, v.vector FROM message_vectors AS v JOIN messages AS m ON m.seq = v.seq"
        " JOIN sessions AS s ON s.number = m.session"
        f" WHERE v.{dialect.among('vector', ':vectors')} AND {condition}",
        {**values, "vectors": vectors},
    )


def rows_of(connection: sqlite3.Connection, vectors: str, query: LogQuery) -> Iterator[tuple[int, int]]:
    found = connection.execute(
        f"SELECT position, vector FROM row_vectors WHERE {dialect.among('vector')}", (vectors,)
    ).fetchall()
    positions = dialect.as_list(position for position, _ in found)
    wanted = {logged.position for logged in rows.by_query(connection, replace(query, bare=True), positions)}
    yield from ((position, vector) for position, vector in found if position in wanted)
