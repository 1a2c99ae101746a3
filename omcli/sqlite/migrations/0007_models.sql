-- Models, and what they make: rows that are made of rows, batches that are offered again, and what it all costs.
--
-- Rows of new types come with it (knowledge, behavior, skill, profile, tool), and batches of a new outcome: `deferred`, for
-- messages that gave nothing yet, may be given a meaning by what follows, and stay uncovered until then.

DROP INDEX batches_cover_once;
CREATE UNIQUE INDEX batches_cover_once ON batches (session, lane, after) WHERE outcome NOT IN ('failed', 'deferred');

-- What was done to rows in one piece: a reflection, of a session or across sessions. It is written with the rows it made and
-- hides, or, where nothing came of it, alone: what was tried on the same rows is not tried again.
CREATE TABLE operations (
    number      INTEGER PRIMARY KEY,
    verb        TEXT NOT NULL,       -- reflect
    session     INTEGER REFERENCES sessions (number),        -- NULL: no single one
    project     INTEGER REFERENCES projects (number),
    at          TEXT NOT NULL,
    outcome     TEXT NOT NULL,       -- done; empty: nothing came of it; failed
    error       TEXT,
    fingerprint TEXT NOT NULL,       -- digest of the rows it was made from and how
    figures     TEXT NOT NULL        -- JSON: what it came to, for people
) STRICT;

CREATE INDEX operations_of_session ON operations (session, project, verb);

-- For the errors that `om status` shows.
CREATE INDEX operations_failed ON operations (number) WHERE outcome = 'failed';

-- Which operation made a row, and which one hid it: what is needed to take it back.
ALTER TABLE observations ADD COLUMN made_by INTEGER REFERENCES operations (number);
ALTER TABLE observations ADD COLUMN hidden_by INTEGER REFERENCES operations (number);

-- Which rows a reflection or an item was made of; those may be hidden.
CREATE TABLE observation_supports (
    observation INTEGER NOT NULL REFERENCES observations (position) ON DELETE CASCADE,
    supported   INTEGER NOT NULL,    -- position of a row it was made of
    PRIMARY KEY (observation, supported)
) STRICT, WITHOUT ROWID;

CREATE INDEX observation_supports_of ON observation_supports (supported);

-- Images that wait to be shown to a model that takes some; they go with the batch that their messages are covered by.
-- Where no such model observes there are none.
CREATE TABLE pictures (
    sha256 BLOB NOT NULL PRIMARY KEY CHECK (length(sha256) = 32),
    content BLOB NOT NULL
) STRICT;

-- Every call of a model: what it was for, what it cost, and how it ended.
CREATE TABLE calls (
    number        INTEGER PRIMARY KEY,
    at            TEXT NOT NULL,     -- when it ended
    lane          TEXT NOT NULL,     -- observe, reflect
    session       INTEGER REFERENCES sessions (number),
    provider      TEXT NOT NULL,
    model         TEXT NOT NULL,
    input_tokens  INTEGER,           -- as the endpoint counts; NULL where it does not tell. Cached ones are part of it.
    output_tokens INTEGER,
    cached_tokens INTEGER,
    cost          REAL,              -- US dollars; NULL where no price is known
    duration      INTEGER NOT NULL,  -- milliseconds
    outcome       TEXT NOT NULL      -- ok, or what went wrong
) STRICT;

CREATE INDEX calls_by_time ON calls (at, input_tokens, output_tokens, cost);

-- How an endpoint takes requests for structured output: what worked last.
CREATE TABLE rungs (
    endpoint TEXT NOT NULL,
    model    TEXT NOT NULL,
    rung     TEXT NOT NULL,          -- json_schema, json_object, prompt
    program  TEXT NOT NULL,          -- version of om: a later one begins at the top again
    PRIMARY KEY (endpoint, model)
) STRICT, WITHOUT ROWID;
