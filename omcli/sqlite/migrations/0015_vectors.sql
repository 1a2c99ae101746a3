-- Vectors of texts, which `om embed` makes. A text is embedded once, wherever it stands, because its digest tells it
-- from others. There are no foreign keys. Triggers unlink what is hidden; a vector that nothing is linked to is deleted
-- with the text, or by `om prune`. Vectors of different models are never compared.
CREATE TABLE vector_models (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,        -- provider/model
    dimensions INTEGER NOT NULL,     -- the highest number counts, if an endpoint changes them
    UNIQUE (name, dimensions)
) STRICT;
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY,
    model  INTEGER NOT NULL,         -- vector_models.number
    digest BLOB NOT NULL CHECK (length(digest) = 16),        -- of the text
    scale  REAL NOT NULL,            -- times this, the vector has length 1
    vector BLOB NOT NULL             -- a signed byte for each dimension
) STRICT;
CREATE UNIQUE INDEX vectors_of_text ON vectors (digest, model);
CREATE TABLE message_vectors (
    seq    INTEGER NOT NULL,         -- messages.seq
    part   INTEGER NOT NULL,         -- a long text has several vectors
    model  INTEGER NOT NULL,
    vector INTEGER NOT NULL,         -- vectors.number
    PRIMARY KEY (seq, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_vectors_of ON message_vectors (vector);
CREATE TRIGGER message_vectors_removed AFTER DELETE ON messages BEGIN
    DELETE FROM message_vectors WHERE seq = old.seq;
END;
CREATE TABLE row_vectors (
    position INTEGER NOT NULL,       -- observations.position
    part     INTEGER NOT NULL,
    model    INTEGER NOT NULL,
    vector   INTEGER NOT NULL,
    PRIMARY KEY (position, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX row_vectors_of ON row_vectors (vector);
CREATE TRIGGER row_vectors_removed AFTER DELETE ON observations BEGIN
    DELETE FROM row_vectors WHERE position = old.position;
END;
CREATE TRIGGER row_vectors_hidden AFTER UPDATE OF visible ON observations WHEN NOT new.visible BEGIN
    DELETE FROM row_vectors WHERE position = old.position;
END;
