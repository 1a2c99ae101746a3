-- Memory of several machines in one store. What `om import` merges keeps the number that it had where it arrived first,
-- so that every store exports it in the same place.
CREATE TABLE hosts (
    number INTEGER PRIMARY KEY,      -- 1: this store
    id     TEXT NOT NULL UNIQUE      -- drawn at random when the store is made
) STRICT;
INSERT INTO hosts (number, id) VALUES (1, lower(hex(randomblob(8))));

CREATE TABLE arrivals (
    kind     TEXT NOT NULL,          -- message, row, operation
    number   INTEGER NOT NULL,       -- messages.seq, observations.position, operations.number
    host     INTEGER NOT NULL REFERENCES hosts (number),
    original INTEGER NOT NULL,       -- its number there
    PRIMARY KEY (kind, number)
) STRICT, WITHOUT ROWID;

-- The store in which the batch was observed (hosts.number).
ALTER TABLE batches ADD COLUMN host INTEGER NOT NULL DEFAULT 1;

-- Rows that were deleted for good, so that no other store brings them back.
CREATE TABLE erased_rows (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16)     -- observations.id
) STRICT, WITHOUT ROWID;
