-- The tables of a store. This file, and the numbered ones after it, are the documentation of the schema.
--
-- Each file is one step: it runs in one transaction, together with `PRAGMA user_version = <its number>`. A file that has
-- been released is never edited again; a change is a new file.
--
-- Everywhere: instants are text, `YYYY-MM-DDTHH:MM:SS.mmmZ` (without the Z where the producer gave no zone), so that they
-- compare as text. Times are told by the program; nothing here asks for the clock. Enumerations are stored as the words
-- the program uses, without a CHECK, which could only be changed by copying the table. A new word comes with a step of its
-- own all the same, if an empty one: an older program then refuses the store, and does not trip over the word.
--
-- Size, measured on messages of coding agents (mean 1 187 bytes of text, median 145): the file is 1.31 times the text of
-- 100 000 messages with every index below, and 1.37 with a row for each fourth of them. Of the 31 %, 12 are room left free
-- where the next message did not fit into a page, 10 the other columns, 9 indexes. Pages of 8 or 16 KB, instead of the usual
-- 4, leave more free: 4 and 12 % of the text.

-- "omcl": says whose file this is, to `file` and to us.
PRAGMA application_id = 1869439852;

-- Sessions under a short number, which is what every other table holds: ids have 36 characters and more, and stand
-- beside each message, row, batch and cursor.
CREATE TABLE sessions (
    number   INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,   -- free text: the producer's, the user's, or derived
    agent    TEXT,                   -- the format it was read from. NULL: only the name has come up so far, in a note or
                                     -- a lease. Such a session is not listed, and takes its facts when it arrives.
    cwd      TEXT,                   -- where it started; also the project
    branch   TEXT,
    title    TEXT,
    model    TEXT,
    parent   TEXT,                   -- id of another session, which need not be here
    first_at TEXT,                   -- earliest and latest instant of its messages. Kept here since finding them means
    last_at  TEXT,                   -- reading every message where few have a time.
    seen_at  TEXT                    -- when something new of it was last taken in
) STRICT;

-- Messages, verbatim but for secrets. `seq` is the order of arrival over all sessions and what cursors hold; it is never
-- given twice (AUTOINCREMENT): under a number that comes again, a new message would count as covered.
CREATE TABLE messages (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    session   INTEGER NOT NULL REFERENCES sessions (number),
    role      TEXT NOT NULL,         -- user, assistant, call, result, event
    aside     TEXT,                  -- what an uncommon message is; NULL for plain ones
    counted   INTEGER NOT NULL,      -- 1: prompt, answer, call or result; 0: an event or an aside
    id        TEXT,                  -- the producer's id
    key       TEXT,                  -- the id in print, where it is not the producer's
    at        TEXT,                  -- when, where the producer says
    name      TEXT,                  -- the speaker, where several share a role
    agent     TEXT,                  -- the subagent or side chain; NULL for the main thread
    cwd       TEXT,                  -- where it differs from the session's
    tool      TEXT,
    call_id   TEXT,                  -- joins a result to its call
    failed    INTEGER,               -- results: 1 failed, 0 succeeded, NULL unknown
    exit_code INTEGER,
    images    TEXT,                  -- JSON list of {media_type, size, sha256}; NULL for none
    tokens    INTEGER NOT NULL,
    counter   TEXT NOT NULL,         -- what `tokens` was counted with; numbers of two counters are never added
    text      TEXT NOT NULL          -- last, so that a long one pushes nothing else out of the first page
) STRICT;

-- Finds what is not observed yet, and the end of the main thread, and answers every count and sum without reading a text:
-- of 100 000 messages it reads 3 MB instead of 146.
CREATE INDEX messages_of_session ON messages (session, seq, agent, counted, tokens, counter);

-- A message by its id in print. The last 8 characters are enough to find few, and make the index a third of the size.
CREATE INDEX messages_by_key ON messages (substr(coalesce(key, id), -8));

-- The call that an observed result belongs to, when it came in an earlier batch.
CREATE INDEX messages_calls ON messages (call_id) WHERE role = 'call';

-- Which messages were ever taken in, so that each is taken in once, also when a resumed session carries a copy of it. A table
-- of its own: an identity outlives its message (then `message` leads nowhere), so that what was forgotten does not come
-- back; and it stands in the file once, where a column with a unique index stands twice.
CREATE TABLE identities (
    identity BLOB NOT NULL PRIMARY KEY CHECK (length(identity) = 16),
    message  INTEGER NOT NULL        -- seq
) STRICT, WITHOUT ROWID;

-- Every attempt to work through a part of a session, what became of it, and the two ends it had.
CREATE TABLE batches (
    number       INTEGER PRIMARY KEY,
    session      INTEGER NOT NULL REFERENCES sessions (number),
    lane         TEXT NOT NULL,      -- observe, reflect, prune
    after        INTEGER NOT NULL,   -- the cursor from which it was read: covers seq > after …
    through      INTEGER NOT NULL,   -- … and seq <= through
    outcome      TEXT NOT NULL,      -- observed; empty: nothing worth noting; failed: nothing written, cursor unmoved
    error        TEXT,
    at           TEXT NOT NULL,
    observations INTEGER NOT NULL,   -- how many rows it gave
    CHECK (after < through)
) STRICT;

-- For the latest batch of a lane. And nothing is covered twice, whatever the program does: of the batches that begin at
-- one place, one counts.
CREATE INDEX batches_of_lane ON batches (session, lane);
CREATE UNIQUE INDEX batches_cover_once ON batches (session, lane, after) WHERE outcome <> 'failed';

-- How far each lane has come in each session. A table of its own, not derived from rows: rows may be pruned. It moves only
-- in the transaction that writes the batch's rows, only from the place the batch was read at, and only forward.
CREATE TABLE cursors (
    session       INTEGER NOT NULL REFERENCES sessions (number),
    lane          TEXT NOT NULL,
    covers_up_to  INTEGER NOT NULL DEFAULT 0,   -- seq: everything up to it is covered by a batch
    offered_up_to INTEGER NOT NULL DEFAULT 0,   -- seq: what was tried; ahead of covers_up_to after a failure
    PRIMARY KEY (session, lane),
    CHECK (covers_up_to <= offered_up_to)
) STRICT, WITHOUT ROWID;

-- Who is at work on a lane. A hint that saves doing the same work twice; what keeps the store right is the cursor. A lease
-- ends by itself: when it expires, or when the program that holds it is gone.
CREATE TABLE leases (
    session    INTEGER NOT NULL REFERENCES sessions (number),
    lane       TEXT NOT NULL,
    owner      TEXT NOT NULL,        -- host:pid:start of the program
    expires_at TEXT NOT NULL,
    PRIMARY KEY (session, lane)
) STRICT, WITHOUT ROWID;

-- Projects (directories) of rows, under a short number for the same reason as sessions.
CREATE TABLE projects (
    number INTEGER PRIMARY KEY,
    path   TEXT NOT NULL UNIQUE
) STRICT;

-- Memory: one fact per row. A row is never rewritten; what changes is the columns from last_used_at on. `position` is the
-- order in which rows were added, and never given twice: followers of the log hold it.
CREATE TABLE observations (
    position      INTEGER PRIMARY KEY AUTOINCREMENT,
    id            BLOB NOT NULL CHECK (length(id) = 16),     -- a UUIDv7
    session       INTEGER REFERENCES sessions (number),      -- NULL: belongs to the project, or to everything
    project       INTEGER REFERENCES projects (number),
    kind          TEXT NOT NULL,     -- observation, reflection, note, item
    type          TEXT NOT NULL,     -- decision, file_modified, …
    priority      TEXT NOT NULL,     -- high, medium, low
    status        TEXT,              -- open, done, resolved; NULL where there is nothing to settle
    importance    INTEGER NOT NULL,  -- 0 to 10
    text          TEXT NOT NULL,     -- one line
    observed_at   TEXT NOT NULL,     -- when the row was written
    event_at      TEXT,              -- when it happened
    refers_to     TEXT,              -- the day or month the text speaks about
    tokens        INTEGER NOT NULL,
    counter       TEXT NOT NULL,
    source        TEXT NOT NULL,     -- who wrote it: rules, model, agent, user, import
    tags          TEXT,              -- JSON list; NULL for none
    metadata      TEXT,              -- JSON object; NULL for none
    batch         INTEGER REFERENCES batches (number),       -- NULL where it came from none
    generation    INTEGER NOT NULL,  -- 0: observed; n + 1: a reflection on generation n
    last_used_at  TEXT,
    superseded_by BLOB,              -- id of the row that replaced it
    dropped_at    TEXT,
    reason        TEXT,              -- why it was superseded or dropped
    visible       INTEGER NOT NULL CHECK (visible = (superseded_by IS NULL AND dropped_at IS NULL))
                                     -- no generated column: an index that holds one is not used in the table's stead
) STRICT;

-- By id, and by what people type: the last 8 hex digits of the id, or the first few of those.
CREATE UNIQUE INDEX observations_by_handle ON observations (substr(id, 13), id);

-- The log of a session or of a project; the first also answers every count and sum.
CREATE INDEX observations_of_session ON observations (session, position, visible, tokens, counter);
CREATE INDEX observations_of_project ON observations (project, position, visible);

-- Which messages a row came from. The message is no foreign key: it may be forgotten while the fact stays, and a lost
-- message must not stop a batch from being written. A link that leads nowhere is left out by readers.
CREATE TABLE observation_sources (
    observation INTEGER NOT NULL REFERENCES observations (position) ON DELETE CASCADE,
    message     INTEGER NOT NULL,    -- seq
    PRIMARY KEY (observation, message)
) STRICT, WITHOUT ROWID;
