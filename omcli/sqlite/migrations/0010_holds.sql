-- What is aside may be so by more than one operation - pruned, and then forgotten -, and is back when none of them stands.

CREATE TABLE message_holds (
    operation INTEGER NOT NULL REFERENCES operations (number),
    message   INTEGER NOT NULL REFERENCES aside_messages (seq),
    PRIMARY KEY (operation, message)
) STRICT, WITHOUT ROWID;

INSERT INTO message_holds (operation, message) SELECT put_by, seq FROM aside_messages;
CREATE INDEX message_holds_of ON message_holds (message);

DROP INDEX aside_messages_of;
ALTER TABLE aside_messages DROP COLUMN put_by;

CREATE TABLE row_holds (
    operation INTEGER NOT NULL REFERENCES operations (number),
    position  INTEGER NOT NULL REFERENCES aside_observations (position) ON DELETE CASCADE,
    PRIMARY KEY (operation, position)
) STRICT, WITHOUT ROWID;

INSERT INTO row_holds (operation, position) SELECT put_by, position FROM aside_observations;
CREATE INDEX row_holds_of ON row_holds (position);

DROP INDEX aside_observations_of;
ALTER TABLE aside_observations DROP COLUMN put_by;

-- Titles are few: each operation has its own, and may have several of one session. The columns stand in the order of the
-- key: of others SQLite 3.40 says that they are NULL when it looks through a file.
CREATE TABLE titles_held (
    put_by  INTEGER NOT NULL REFERENCES operations (number),
    session INTEGER NOT NULL REFERENCES sessions (number),
    title   TEXT NOT NULL,
    PRIMARY KEY (put_by, session, title)
) STRICT, WITHOUT ROWID;

INSERT INTO titles_held (session, title, put_by) SELECT session, title, put_by FROM aside_titles;
DROP TABLE aside_titles;
ALTER TABLE titles_held RENAME TO aside_titles;

-- Messages that were put aside while they waited to be observed. The cursor may pass them then: such a message waits again
-- when it comes back, and is covered by a batch of its own kind. One that comes back before the cursor leaves the table.
CREATE TABLE passed_over (
    session INTEGER NOT NULL REFERENCES sessions (number),
    message INTEGER NOT NULL,        -- seq
    since   TEXT NOT NULL,           -- when it was put aside: what is observed ahead from then on knows nothing of it
    PRIMARY KEY (session, message)
) STRICT, WITHOUT ROWID;

-- 1: a batch of messages that were passed over; the cursor was behind them before, and stays.
ALTER TABLE batches ADD COLUMN late INTEGER NOT NULL DEFAULT 0;

DROP INDEX batches_cover_once;
CREATE UNIQUE INDEX batches_cover_once ON batches (session, lane, late, after)
    WHERE outcome NOT IN ('failed', 'deferred', 'ahead');

-- Of what is aside already, those that waited: no batch has covered them, or one that is later than what put them aside.
-- Batches follow each other: the last that begins before a message is the one. It is found by the index above.
INSERT INTO passed_over (session, message, since)
SELECT m.session, m.seq, o.at FROM aside_messages AS m
JOIN message_holds AS h ON h.message = m.seq JOIN operations AS o ON o.number = h.operation
WHERE NOT m.erased AND o.verb = 'forget' AND NOT coalesce((
    SELECT m.seq <= b.through AND b.at <= o.at FROM batches AS b
    WHERE b.session = m.session AND b.lane = 'observe' AND b.late = 0 AND b.after < m.seq
    AND b.outcome NOT IN ('failed', 'deferred', 'ahead') ORDER BY b.after DESC LIMIT 1
), 0);

-- What observing has put in the place of a row that an operation, or a forgetting, had put out of sight: the row goes behind that one
-- when it is back, and not beside it.
CREATE TABLE successors (
    row    BLOB NOT NULL,            -- observations.id
    by     BLOB NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (row, by)
) STRICT, WITHOUT ROWID;

-- What a row took the place of: looked up for every row that is forgotten, deleted or shown with its history.
CREATE INDEX observations_superseded ON observations (superseded_by) WHERE superseded_by IS NOT NULL;
