-- Messages and rows of each session in numbers, so that what is due and how much there is takes the same time with a
-- million rows. Triggers keep them: 2 microseconds for a message or row, of which `om observe` takes a thousand.
CREATE TABLE message_counts (
    session  INTEGER NOT NULL,       -- sessions.number
    counter  TEXT NOT NULL,
    messages INTEGER NOT NULL,       -- all of them
    counted  INTEGER NOT NULL,       -- those with messages.counted
    tokens   INTEGER NOT NULL,       -- of all of them
    PRIMARY KEY (session, counter)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER message_counts_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_counts (session, counter, messages, counted, tokens)
        VALUES (new.session, new.counter, 1, new.counted, new.tokens)
        ON CONFLICT DO UPDATE SET messages = messages + 1, counted = counted + excluded.counted,
            tokens = tokens + excluded.tokens;
END;
CREATE TRIGGER message_counts_removed AFTER DELETE ON messages BEGIN
    UPDATE message_counts SET messages = messages - 1, counted = counted - old.counted, tokens = tokens - old.tokens
        WHERE session = old.session AND counter = old.counter;
END;
INSERT INTO message_counts (session, counter, messages, counted, tokens)
    SELECT session, counter, count(*), sum(counted), sum(tokens) FROM messages GROUP BY session, counter;

CREATE TABLE row_counts (
    session INTEGER NOT NULL,        -- sessions.number; 0 for rows of no session
    kind    TEXT NOT NULL,
    counter TEXT NOT NULL,
    visible INTEGER NOT NULL,        -- rows
    hidden  INTEGER NOT NULL,        -- rows
    tokens  INTEGER NOT NULL,        -- of visible rows
    changes INTEGER NOT NULL,        -- how often a row was added, hidden, restored or removed: while it is the same, so are
                                     -- the visible rows
    PRIMARY KEY (session, kind, counter)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER row_counts_added AFTER INSERT ON observations BEGIN
    INSERT INTO row_counts (session, kind, counter, visible, hidden, tokens, changes)
        VALUES (coalesce(new.session, 0), new.kind, new.counter, new.visible, NOT new.visible,
            new.tokens * new.visible, 1)
        ON CONFLICT DO UPDATE SET visible = visible + excluded.visible, hidden = hidden + excluded.hidden,
            tokens = tokens + excluded.tokens, changes = changes + 1;
END;
CREATE TRIGGER row_counts_changed AFTER UPDATE OF visible ON observations WHEN new.visible <> old.visible BEGIN
    UPDATE row_counts SET visible = visible + new.visible - old.visible, hidden = hidden + old.visible - new.visible,
            tokens = tokens + new.tokens * (new.visible - old.visible), changes = changes + 1
        WHERE session = coalesce(new.session, 0) AND kind = new.kind AND counter = new.counter;
END;
CREATE TRIGGER row_counts_removed AFTER DELETE ON observations BEGIN
    UPDATE row_counts SET visible = visible - old.visible, hidden = hidden - NOT old.visible,
            tokens = tokens - old.tokens * old.visible, changes = changes + 1
        WHERE session = coalesce(old.session, 0) AND kind = old.kind AND counter = old.counter;
END;
INSERT INTO row_counts (session, kind, counter, visible, hidden, tokens, changes)
    SELECT coalesce(session, 0), kind, counter, sum(visible), sum(NOT visible), sum(tokens * visible), 0
    FROM observations GROUP BY 1, 2, 3;

-- Of a reflection that read all rows of a session and left nothing worth another: a digest of its settings, and the
-- session's `changes` afterwards. While both are the same, no other is due.
ALTER TABLE operations ADD COLUMN unchanged TEXT;

-- For the errors that `om status` shows.
CREATE INDEX batches_failed ON batches (number) WHERE outcome = 'failed';

-- The notes of a session, hidden ones too, for its working-memory block.
CREATE INDEX observations_of_session_by_hand ON observations (session, kind, position) WHERE kind <> 'observation';
