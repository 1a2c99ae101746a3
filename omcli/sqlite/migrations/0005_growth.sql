-- Growth: a file that was taken in is not read again, and one that has grown only from where it ended.
--
-- A bookmark is a hint: without it the whole file is read again, to the same end. So it is written after the messages it
-- speaks for, and goes with the first identity that is taken out of the store: then nobody knows any more whether all that
-- stands before it is here.
--
-- Size, measured: `carried` is 0.1 to 1 % of transcripts of coding agents, and 5 % of chat messages without ids. Above an
-- eighth of the file (and 64 KB) it is not kept.

CREATE TABLE bookmarks (
    path    TEXT NOT NULL,           -- absolute, links resolved
    place   INTEGER NOT NULL,        -- bytes before it: the end of a line, or of the file; at most one of each
    terms   TEXT NOT NULL,           -- what decides how the file is read: program, format, session. Read otherwise, it tells
                                     -- nothing
    digest  BLOB NOT NULL CHECK (length(digest) = 32),       -- SHA-256 of the bytes before it
    found   TEXT NOT NULL,           -- JSON: what was in them, for the report
    carried BLOB,                    -- what is needed to go on from there (zlib, JSON). NULL: it only tells whether the file
                                     -- is still what it was
    PRIMARY KEY (path, place)
) STRICT;

CREATE TRIGGER bookmarks_need_every_identity AFTER DELETE ON identities BEGIN
    DELETE FROM bookmarks;
END;
