-- Blocks: what was observed ahead of its time. Its rows are in nobody's sight, no cursor has moved for it, and its messages
-- still wait; when they are due it is written down as it is, without asking anybody.
--
-- A block goes in the transaction that makes it superfluous: when it is activated, when the cursor has passed it otherwise,
-- or when another one holds all of it. The batch it was read as stays, with a new outcome: `ahead`, kept as a block.

DROP INDEX batches_cover_once;
CREATE UNIQUE INDEX batches_cover_once ON batches (session, lane, after)
    WHERE outcome NOT IN ('failed', 'deferred', 'ahead');

-- Of the messages nothing is kept but the two ends: some may be forgotten until it is activated, and tokens are counted then.
CREATE TABLE blocks (
    number   INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL REFERENCES sessions (number),
    after    INTEGER NOT NULL,       -- it has the messages with seq > after …
    through  INTEGER NOT NULL,       -- … and seq <= through
    source   TEXT NOT NULL,          -- who observed: rules, model
    at       TEXT NOT NULL,          -- when
    observed TEXT NOT NULL,          -- JSON: rows to be, each with the id it will have (those of later blocks may replace it),
                                     -- standing rows that mattered, a title
    CHECK (after < through)
) STRICT;

-- Where the last one ends, without reading what it says.
CREATE UNIQUE INDEX blocks_of_session ON blocks (session, after, through);
