"""The SQL with which the owner of a store on a server shares it: roles, and what each of them may read and write."""

from __future__ import annotations

import re
import textwrap

from omcli.base.errors import BadUsage
from omcli.sqlite.connection import APPLICATION_ID

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,55}", re.ASCII)
"""What the names of the roles may begin with. PostgreSQL would cut names that are longer, and make them equal."""

_OF_SESSION = "EXISTS (SELECT FROM om.sessions AS s WHERE s.number = {table}.session)"
_OF_PROJECT = f"""CASE
        WHEN project IS NOT NULL THEN EXISTS (SELECT FROM om.projects AS p WHERE p.number = {{table}}.project)
        WHEN session IS NOT NULL THEN {_OF_SESSION}
        ELSE '' LIKE ANY ((SELECT om.shared_with_me())::text[])
    END"""
_OF_MESSAGE = "EXISTS (SELECT FROM om.messages AS m WHERE m.seq = {table}.%s)"
_OF_ROW = "EXISTS (SELECT FROM om.observations AS o WHERE o.position = {table}.%s)"
_EVERYTHING = "TRUE"

POLICIES = {
    "schema_version": _EVERYTHING,
    "vector_models": _EVERYTHING,
    "hosts": _EVERYTHING,
    "authors": _EVERYTHING,
    "projects": "path LIKE ANY ((SELECT om.shared_with_me())::text[])",
    "sessions": "coalesce(cwd, '') LIKE ANY ((SELECT om.shared_with_me())::text[])",
    "messages": f"""{_OF_SESSION}
        AND (cwd IS NULL OR cwd LIKE ANY ((SELECT om.shared_with_me())::text[]) OR EXISTS (
            SELECT FROM om.sessions AS s WHERE s.number = messages.session AND starts_with(messages.cwd, s.cwd || '/')
        ))""",
    "observations": _OF_PROJECT,
    "operations": _OF_PROJECT,
    "batches": _OF_SESSION,
    "cursors": _OF_SESSION,
    "leases": _OF_SESSION,
    "passed_over": _OF_SESSION,
    "calls": _OF_SESSION,
    "message_counts": _OF_SESSION,
    "row_counts": _OF_SESSION,
    "identities": _OF_MESSAGE % "message",
    "message_words": _OF_MESSAGE % "seq",
    "message_vectors": _OF_MESSAGE % "seq",
    "row_words": _OF_ROW % "position",
    "row_vectors": _OF_ROW % "position",
    "vectors": """EXISTS (SELECT FROM om.message_vectors AS v WHERE v.vector = vectors.number)
        OR EXISTS (SELECT FROM om.row_vectors AS v WHERE v.vector = vectors.number)""",
    "observation_sources": f"{_OF_ROW % 'observation'}\n        AND {_OF_MESSAGE % 'message'}",
    "observation_supports": f"{_OF_ROW % 'observation'}\n        AND {_OF_ROW % 'supported'}",
    "arrivals": f"""CASE kind
        WHEN 'message' THEN {_OF_MESSAGE % "number"}
        WHEN 'row' THEN {_OF_ROW % "number"}
        WHEN 'operation' THEN EXISTS (SELECT FROM om.operations AS o WHERE o.number = arrivals.number)
    END""",
}
"""What a reader sees of each table. A condition reads other tables as the reader does, so that it need not repeat
theirs. Names of authors are visible like those of the server's users, which PostgreSQL shows to everyone (`pg_roles`);
what they wrote is not.
"""

WITHHELD = (
    "aside_messages",
    "aside_observations",
    "aside_titles",
    "message_holds",
    "row_holds",
    "successors",
    "tombstones",
    "erased_rows",
    "blocks",
    "bookmarks",
    "pictures",
    "rungs",
    "notices",
)
"""Tables of which a reader sees nothing: what was forgotten or pruned and its hashes, and what only writers need."""

UNCOUNTED = {
    "sessions": ("id", "cwd", "branch", "title", "parent"),
    "projects": ("path",),
    "messages": ("id", "key", "name", "cwd", "tool", "images", "text"),
    "identities": ("identity",),
    "observations": ("text", "tags", "metadata", "reason"),
    "operations": ("error", "fingerprint", "figures"),
    "batches": ("error",),
    "leases": ("owner",),
    "vectors": ("digest", "vector"),
    "message_words": ("words",),
    "row_words": ("words",),
}
"""Columns of which PostgreSQL keeps no statistics: estimates (EXPLAIN) would tell what is in the rows of others."""

_SQL = r"""-- Shares the memory in this database. Run it whole, as the user who created the memory or as a superuser:
-- psql -v ON_ERROR_STOP=1. Run it again after an upgrade of om; doing so changes nothing else.
--
--   {owner}   owns the memory, migrates it, and says who may read which project
--   {writer}  reads and writes all of it: for the people and agents whose memory it is
--   {reader}  reads the projects that are shared with it, and can change nothing
--
--   CREATE ROLE ann LOGIN PASSWORD '...';
--   GRANT {writer} TO ann;
--   GRANT {reader} TO bob;
--   INSERT INTO om.access VALUES ('bob', '/work/app');    -- sessions that began there, and rows of that project
--   INSERT INTO om.access VALUES ('bob', '/work/app/*');  -- as well as those of the folders below it
--   INSERT INTO om.access VALUES ('bob', '');             -- what belongs to no project
--   DELETE FROM om.access WHERE member = 'bob'::regrole;
--
-- `bob` may be a group, for all its members. Nothing is shared until it is entered there.

BEGIN;
SET LOCAL search_path = pg_catalog;
SET LOCAL client_min_messages = warning;

-- The roles. Roles belong to the whole server, and a member of one is so in each of its databases.
DO $$
DECLARE
    role text;
    before regrole;
    thing text;
BEGIN
    IF to_regclass('om.schema_version') IS NULL THEN
        RAISE EXCEPTION 'there is no memory in the database %', current_database()
            USING HINT = 'om store init --db postgresql://... creates one';
    END IF;
    PERFORM pg_advisory_xact_lock({lock});  -- the lock of all writers
    FOREACH role IN ARRAY ARRAY[{names}] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;

    -- Everything belongs to the owner's role, and who owned it before is a member.
    SELECT nspowner INTO before FROM pg_namespace WHERE nspname = 'om';
    FOR role IN SELECT DISTINCT rolname FROM pg_roles WHERE rolname <> {owner_name}
        AND (oid = before OR rolname = current_user)
        AND NOT (pg_has_role(oid, {owner_name}, 'USAGE') AND pg_has_role(oid, {owner_name}, 'SET'))
    LOOP
        EXECUTE format('GRANT %I TO %I WITH INHERIT TRUE, SET TRUE', {owner_name}, role);
    END LOOP;
    FOR thing IN
        SELECT 'SCHEMA om' FROM pg_namespace WHERE nspname = 'om' AND nspowner <> {owner_name}::regrole
        UNION ALL SELECT format('TABLE %s', oid::regclass) FROM pg_class
            WHERE relnamespace = 'om'::regnamespace AND relkind IN ('r', 'p') AND relowner <> {owner_name}::regrole
        UNION ALL SELECT format('ROUTINE %s', oid::regprocedure) FROM pg_proc
            WHERE pronamespace = 'om'::regnamespace AND proowner <> {owner_name}::regrole
        UNION ALL SELECT format('DOMAIN %s', oid::regtype) FROM pg_type
            WHERE typnamespace = 'om'::regnamespace AND typtype = 'd' AND typowner <> {owner_name}::regrole
    LOOP
        EXECUTE format('ALTER %s OWNER TO %I', thing, {owner_name});
    END LOOP;
END $$;

-- Who may read which project. A reader sees only its own entries.
CREATE TABLE IF NOT EXISTS om.access (
    member regrole NOT NULL,         -- a user or a group
    project text COLLATE "C" NOT NULL CHECK (project NOT LIKE '%_/'),
    PRIMARY KEY (member, project)
);
ALTER TABLE om.access OWNER TO {owner};
DELETE FROM om.access WHERE NOT EXISTS (SELECT FROM pg_roles WHERE oid = member);

-- Patterns (LIKE) of the projects that are shared with the current user.
CREATE OR REPLACE FUNCTION om.shared_with_me() RETURNS text[] LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT coalesce(array_agg(pattern), '{{}}') FROM om.access
        CROSS JOIN regexp_replace(project, '([%_\\])', '\\\1', 'g') AS escaped
        CROSS JOIN LATERAL unnest(CASE
            WHEN escaped LIKE '%/*' THEN ARRAY[nullif(left(escaped, -2), ''), left(escaped, -1) || '%']
            ELSE ARRAY[escaped] END) AS pattern
        WHERE pg_has_role(member, 'USAGE') AND pattern IS NOT NULL;
END;
ALTER FUNCTION om.shared_with_me() OWNER TO {owner};

-- What the roles may do. Numbers of new rows need no right of their own, and nobody may TRUNCATE.
REVOKE ALL ON SCHEMA om FROM PUBLIC, {writer}, {reader};
REVOKE ALL ON ALL TABLES IN SCHEMA om FROM PUBLIC, {writer}, {reader};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA om FROM PUBLIC, {writer}, {reader};
REVOKE ALL ON ALL ROUTINES IN SCHEMA om FROM PUBLIC, {writer}, {reader};
GRANT USAGE ON SCHEMA om TO {writer}, {reader};
GRANT SELECT ON ALL TABLES IN SCHEMA om TO {writer}, {reader};
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA om TO {writer};
REVOKE INSERT, UPDATE, DELETE ON om.access, om.schema_version FROM {writer};
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA om TO {writer};

-- Functions that only calculate are for readers as well; each table lets nobody see a row that no policy names; and
-- policies from an earlier run are made anew.
DO $$
DECLARE
    thing text;
BEGIN
    FOR thing IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'om'::regnamespace AND provolatile <> 'v'
    LOOP
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO %I', thing, {reader_name});
    END LOOP;
    FOR thing IN SELECT format('%I ON %s', polname, polrelid::regclass) FROM pg_policy
        JOIN pg_class ON pg_class.oid = polrelid
        WHERE relnamespace = 'om'::regnamespace AND polname IN ('writers', 'readers')
    LOOP
        EXECUTE format('DROP POLICY %s', thing);
    END LOOP;
    FOR thing IN SELECT oid::regclass FROM pg_class WHERE relnamespace = 'om'::regnamespace AND relkind IN ('r', 'p')
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', thing);
        IF thing <> 'om.access' THEN
            EXECUTE format('CREATE POLICY writers ON %s TO %I USING (TRUE) WITH CHECK (TRUE)', thing, {writer_name});
        END IF;
    END LOOP;
END $$;

-- PostgreSQL keeps no statistics of what people wrote, because its estimates (EXPLAIN) are made for everyone. Those it
-- has are dropped by giving the column the type that it has.
DO $$
DECLARE
    of_table text;
    of_column text;
BEGIN
    FOR of_table, of_column IN VALUES
        {uncounted}
    LOOP
        EXECUTE format('ALTER TABLE om.%I ALTER COLUMN %I SET STATISTICS 0', of_table, of_column);
        IF EXISTS (SELECT FROM pg_stats WHERE schemaname = 'om' AND tablename = of_table AND attname = of_column) THEN
            EXECUTE (SELECT format('ALTER TABLE om.%I ALTER COLUMN %I TYPE %s%s', of_table, of_column,
                    format_type(atttypid, atttypmod), ' COLLATE ' || nullif(attcollation, 0)::regcollation)
                FROM pg_attribute WHERE attrelid = format('om.%I', of_table)::regclass AND attname = of_column);
        END IF;
    END LOOP;
    FOR of_table IN SELECT oid::regclass FROM pg_class  -- they were just made anew
        WHERE relnamespace = 'om'::regnamespace AND starts_with(relname, 'vectors_near_')
    LOOP
        EXECUTE format('ALTER INDEX %s ALTER COLUMN 1 SET STATISTICS 0', of_table);
    END LOOP;
END $$;

-- What readers see. The conditions apply before those of a query, and those of a table that a condition reads apply
-- as well. There is no policy for what was forgotten or pruned, and for what only writers need:
-- {withheld}.
CREATE POLICY readers ON om.access FOR SELECT TO {reader}, {writer} USING (pg_has_role(member, 'USAGE'));
{policies}
COMMIT;
"""


def roles(name: str = "om") -> str:
    """Return SQL that makes the roles `name`_owner, `name`_writer and `name`_reader and gives them their rights.

    It is one transaction, and can be run again. Roles belong to the whole server: stores in several databases of one
    server need different names. Raise BadUsage if a role cannot have this name.
    """
    if not _NAME.fullmatch(name):
        raise BadUsage(f"`{name}` cannot begin the names of roles", hint="use at most 56 of the characters a-z 0-9 _ -")
    each = {role: f"{name}_{role}" for role in ("owner", "writer", "reader")}
    quoted = {role: f'"{named}"' if "-" in named else named for role, named in each.items()}
    return _SQL.format(
        **quoted,
        **{f"{role}_name": f"'{named}'" for role, named in each.items()},
        names=", ".join(f"'{named}'" for named in each.values()),
        lock=APPLICATION_ID,
        uncounted=",\n        ".join(
            ", ".join(f"('{table}', '{column}')" for column in columns) for table, columns in UNCOUNTED.items()
        ),
        withheld="\n-- ".join(textwrap.wrap(", ".join(WITHHELD), 110)),
        policies="\n".join(
            f"CREATE POLICY readers ON om.{table} FOR SELECT TO {quoted['reader']} USING (\n"
            f"    {condition.format(table=table)});"
            for table, condition in POLICIES.items()
        ),
    )
