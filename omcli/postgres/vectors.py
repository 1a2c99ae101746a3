"""Search among vectors by an index of the extension pgvector, if the database has one (see the first migration)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from omcli.base.errors import BadConfiguration
from omcli.memory.search import Nearest
from omcli.sqlite import dialect, rows, vectors
from omcli.sqlite.search import message_clauses
from omcli.sqlite.vectors import Model, SqliteVectors

if TYPE_CHECKING:
    from omcli.memory.observation import LogQuery
    from omcli.sqlite.vectors import Floats

FEW = 2_000
"""Number of vectors up to which all are compared, and of those whose average says what is near."""
_READ = 100
"""Number of vectors that are read from the index. More of the nearest would be missed if it looked at no more."""
_INDEX = """
    SELECT extnamespace::regnamespace::text FROM pg_extension
    WHERE extname = 'vector' AND to_regclass(?) IS NOT NULL AND has_schema_privilege(extnamespace, 'USAGE')
"""
"""The schema of pgvector, if an index exists and the user may use it."""
_LACKING = """
    SELECT count(*) FROM vector_models AS model WHERE to_regclass('vectors_near_' || model.number) IS NULL
        AND dimensions <= 4000 AND EXISTS (SELECT 1 FROM vectors AS v WHERE v.model = model.number)
"""
_SETTINGS = f"""
    SELECT set_config('om.wanted', ?, TRUE), set_config('hnsw.iterative_scan', 'relaxed_order', TRUE),
        set_config('hnsw.ef_search', '{2 * _READ}', TRUE), set_config('enable_sort', 'off', TRUE)
"""
"""Settings of the transaction: the vector to compare with, and that the index is read on until enough is found."""
_OF_MESSAGES = """
    message_vectors AS v JOIN messages AS m ON m.seq = v.seq JOIN sessions AS s ON s.number = m.session
"""
_OF_ROWS = "row_vectors AS v JOIN observations AS o ON o.position = v.position"


class PostgresVectors(SqliteVectors):
    """Vectors with an index for each model. It finds most of the nearest, and their cosines are as exact as others.

    Up to `few` vectors are compared without it.
    """

    def __init__(self, database: dialect.Database, *, few: int) -> None:
        super().__init__(database)
        self._few = few

    def has_index(self) -> bool:
        """Return True unless there are vectors without an index that could have one."""
        with self._database.reading() as connection:
            (number,) = connection.execute(_LACKING).fetchone()
        return not number

    def renew(self) -> None:
        """Make the indexes that are missing. Raise BadConfiguration if the database lacks the extension."""
        with self._database.writing() as connection:
            connection.execute("SELECT index_vectors(number) FROM vector_models")
        if not self.has_index():
            raise BadConfiguration(
                "the database has no pgvector 0.8 or later", hint="`CREATE EXTENSION vector` adds it"
            )

    def _nearest(self, connection: Any, model: Model, wanted: Floats, query: LogQuery, *, most: int) -> Nearest:
        index = connection.execute(_INDEX, (f"vectors_near_{model.number}",)).fetchone()
        if index is None:
            return super()._nearest(connection, model, wanted, query, most=most)
        connection.execute(_SETTINGS, (str(wanted.tolist()),))
        halves = f"{index[0]}.halfvec({model.dimensions})"
        by_distance = (
            f"ORDER BY signed_bytes(n.vector)::{halves} OPERATOR({index[0]}.<=>)"
            f" current_setting('om.wanted')::{halves} LIMIT {_READ}"
        )
        # Digests have no order of their own, so that the first ones are a sample.
        by_digest = f"{vectors.vectors_of(model)} ORDER BY n.digest LIMIT {self._few or FEW}"
        _, sample = vectors.match(connection, by_digest, (), wanted)

        def nearest_of(
            links: str, condition: str, values: dialect.Values, look_up: Callable[[str], Iterable[tuple[int, int]]]
        ) -> dict[int, float]:
            linked = f"FROM {links} WHERE v.model = {model.number} AND {condition}"
            source = f"{vectors.vectors_of(model)} AND EXISTS (SELECT 1 {linked} AND v.vector = n.number)"
            counted = f"SELECT count(*) FROM (SELECT 1 {linked} LIMIT {self._few + 1}) AS found"
            (number,) = connection.execute(counted, values).fetchone()
            for order in ("",) if number <= self._few else (by_distance, ""):
                numbers, cosines = vectors.match(connection, f"{source} {order}", values, wanted)
                ranked = vectors.rank(numbers, cosines, vectors.limit(cosines, among=sample))
                found = vectors.nearest_of(ranked, look_up, most=most)
                if len(found) == most or len(ranked) < len(numbers):
                    break  # the others are farther away, or not near
            return found

        return Nearest(
            messages=nearest_of(
                _OF_MESSAGES, *message_clauses(query), lambda which: vectors.messages_of(connection, which, query)
            ),
            rows=nearest_of(
                _OF_ROWS, *rows.clauses(connection, query), lambda which: vectors.rows_of(connection, which, query)
            ),
        )
