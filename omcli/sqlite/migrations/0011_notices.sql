-- Notices that are printed once per store, so that a hook does not print them at every turn. The first one says that an API
-- key is set although no model is chosen.
CREATE TABLE notices (
    name TEXT PRIMARY KEY,
    at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
