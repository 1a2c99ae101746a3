-- What is done in one piece can be taken back: operations of more verbs (compact, prune, forget, undo), and what they put aside.

-- The operation that it is a part of: a compaction reflects several times, and is taken back as one.
ALTER TABLE operations ADD COLUMN part_of INTEGER REFERENCES operations (number);
-- The operation that took it back.
ALTER TABLE operations ADD COLUMN undone_by INTEGER REFERENCES operations (number);
-- When what it took out of sight was deleted. There is no way back from then on.
ALTER TABLE operations ADD COLUMN final_at TEXT;

CREATE INDEX operations_parts ON operations (part_of) WHERE part_of IS NOT NULL;

-- What an operation made and hid, for taking it back.
CREATE INDEX observations_made ON observations (made_by) WHERE made_by IS NOT NULL;
CREATE INDEX observations_hidden ON observations (hidden_by) WHERE hidden_by IS NOT NULL;

-- Messages that are put aside, by pruning or forgetting. They are moved here and back, under the number they had: where
-- messages are read there is nothing to leave out, and it costs nothing. Their identities stay, so that they are not taken
-- in again. The columns of `messages`, in any order (a step that adds one there adds it here), and whose doing it was.
CREATE TABLE aside_messages (
    seq        INTEGER PRIMARY KEY,
    session    INTEGER NOT NULL REFERENCES sessions (number),
    role       TEXT NOT NULL,
    aside      TEXT,
    counted    INTEGER NOT NULL,
    id         TEXT,
    key        TEXT,
    at         TEXT,
    utc_offset INTEGER,
    name       TEXT,
    agent      TEXT,
    cwd        TEXT,
    tool       TEXT,
    call_id    TEXT,
    failed     INTEGER,
    exit_code  INTEGER,
    images     TEXT,
    tokens     INTEGER NOT NULL,
    counter    TEXT NOT NULL,
    text       TEXT NOT NULL,
    put_by     INTEGER NOT NULL REFERENCES operations (number),
    erased     INTEGER NOT NULL DEFAULT 0     -- 1: deleted for good. What is left is a stub that rows go on to cite: its
                                              -- number, session, role and id.
) STRICT;

CREATE INDEX aside_messages_of ON aside_messages (put_by);
CREATE INDEX aside_messages_of_session ON aside_messages (session, seq);
CREATE INDEX aside_messages_by_key ON aside_messages (substr(coalesce(key, id), -8));

-- Rows that are forgotten: out of the log altogether, with what they were linked to. The columns of `observations` likewise.
CREATE TABLE aside_observations (
    position      INTEGER PRIMARY KEY,
    id            BLOB NOT NULL,
    session       INTEGER REFERENCES sessions (number),
    project       INTEGER REFERENCES projects (number),
    kind          TEXT NOT NULL,
    type          TEXT NOT NULL,
    priority      TEXT NOT NULL,
    status        TEXT,
    importance    INTEGER NOT NULL,
    text          TEXT NOT NULL,
    observed_at   TEXT NOT NULL,
    event_at      TEXT,
    refers_to     TEXT,
    tokens        INTEGER NOT NULL,
    counter       TEXT NOT NULL,
    source        TEXT NOT NULL,
    tags          TEXT,
    metadata      TEXT,
    batch         INTEGER REFERENCES batches (number),
    generation    INTEGER NOT NULL,
    last_used_at  TEXT,
    superseded_by BLOB,
    dropped_at    TEXT,
    reason        TEXT,
    visible       INTEGER NOT NULL,
    made_by       INTEGER REFERENCES operations (number),
    hidden_by     INTEGER REFERENCES operations (number),
    sources       TEXT NOT NULL,      -- JSON list of `seq`
    supports      TEXT NOT NULL,      -- JSON list of positions of rows it was made of
    put_by        INTEGER NOT NULL REFERENCES operations (number)
) STRICT;

CREATE INDEX aside_observations_of ON aside_observations (put_by);
CREATE INDEX aside_observations_by_handle ON aside_observations (substr(id, 13), id);

-- Titles of sessions that told what was forgotten.
CREATE TABLE aside_titles (
    session INTEGER NOT NULL REFERENCES sessions (number),
    title   TEXT NOT NULL,
    put_by  INTEGER NOT NULL REFERENCES operations (number),
    PRIMARY KEY (put_by, session)
) STRICT, WITHOUT ROWID;

-- What must not come back: digests of what forgotten rows and titles say. One that was written by hand may say it all the same. They
-- outlive the rows, and count as long as the operation was not taken back.
CREATE TABLE tombstones (
    digest    BLOB NOT NULL CHECK (length(digest) = 16),
    operation INTEGER NOT NULL REFERENCES operations (number),
    PRIMARY KEY (digest, operation)
) STRICT, WITHOUT ROWID;
