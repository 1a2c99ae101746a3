-- Who wrote: a memory may be shared by several people, and moved between machines. What was written before has no
-- author.
CREATE TABLE authors (
    number  INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,           -- of a person, or of a program that runs by itself
    machine TEXT NOT NULL,
    UNIQUE (name, machine)
) STRICT;
-- Who first stored something of the session, wrote the row, and did the operation.
ALTER TABLE sessions ADD COLUMN author INTEGER REFERENCES authors (number);
ALTER TABLE observations ADD COLUMN author INTEGER REFERENCES authors (number);
ALTER TABLE aside_observations ADD COLUMN author INTEGER REFERENCES authors (number);
ALTER TABLE operations ADD COLUMN author INTEGER REFERENCES authors (number);
