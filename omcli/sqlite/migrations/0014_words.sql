-- The index of words that `om recall` searches. It holds the numbers of messages and rows by word, not their text, and
-- triggers keep it up to date, also when messages are hidden or restored. `om_words` is a function of om
-- (`sqlite.dialect.define_functions`): it separates characters of scripts without spaces.
CREATE VIRTUAL TABLE message_words USING fts5 (
    text, content = '', detail = none, columnsize = 0, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE TRIGGER message_words_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_words (rowid, text) VALUES (new.seq, om_words(coalesce(new.name || ' ', '') || new.text));
END;
CREATE TRIGGER message_words_removed AFTER DELETE ON messages BEGIN
    INSERT INTO message_words (message_words, rowid, text)
        VALUES ('delete', old.seq, om_words(coalesce(old.name || ' ', '') || old.text));
END;
CREATE VIRTUAL TABLE row_words USING fts5 (
    text, content = '', detail = none, columnsize = 0, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE TRIGGER row_words_added AFTER INSERT ON observations BEGIN
    INSERT INTO row_words (rowid, text) VALUES (new.position, om_words(new.text));
END;
CREATE TRIGGER row_words_removed AFTER DELETE ON observations BEGIN
    INSERT INTO row_words (row_words, rowid, text) VALUES ('delete', old.position, om_words(old.text));
END;
INSERT INTO message_words (rowid, text) SELECT seq, om_words(coalesce(name || ' ', '') || text) FROM messages;
INSERT INTO row_words (rowid, text) SELECT position, om_words(text) FROM observations;
