-- The index of words. A client makes the words of a text (see `postgres.search`), because only it splits them as
-- SQLite's index does. Triggers tell it which texts a transaction has added, in a setting that ends with the
-- transaction: in a table, every writer would wade through what others have deleted.
CREATE TABLE message_words (
    seq   bigint PRIMARY KEY,                -- messages.seq
    words text[] COLLATE "C" NOT NULL        -- each once
);
CREATE INDEX message_words_of ON message_words USING gin (words);
CREATE TABLE row_words (
    position bigint PRIMARY KEY,             -- observations.position
    words    text[] COLLATE "C" NOT NULL
);
CREATE INDEX row_words_of ON row_words USING gin (words);
CREATE FUNCTION note_unindexed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    name text := 'om.unindexed_' || TG_TABLE_NAME;
    numbers text;
BEGIN
    IF TG_TABLE_NAME = 'messages' THEN
        SELECT string_agg(seq::text, ',') INTO numbers FROM changed;
    ELSE
        SELECT string_agg(position::text, ',') INTO numbers FROM changed;
    END IF;
    PERFORM set_config(name, concat_ws(',', nullif(current_setting(name, TRUE), ''), numbers), TRUE);
    RETURN NULL;
END $$;
CREATE TRIGGER messages_unindexed AFTER INSERT ON messages REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_unindexed();
CREATE TRIGGER observations_unindexed AFTER INSERT ON observations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_unindexed();
CREATE FUNCTION remove_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'messages' THEN
        DELETE FROM message_words USING changed WHERE message_words.seq = changed.seq;
    ELSE
        DELETE FROM row_words USING changed WHERE row_words.position = changed.position;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER message_words_removed AFTER DELETE ON messages REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION remove_words();
CREATE TRIGGER row_words_removed AFTER DELETE ON observations REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION remove_words();
