-- The last rows of a type in a project, and the last that no observer wrote: what a pack of another session chooses from.
-- With the index of the project alone all its rows are read for them; of 300 000 that takes 180 ms, and with these two 1 ms.
-- The session is there for passing over the rows of one session without reading them.
CREATE INDEX observations_of_type ON observations (project, type, position, session)
    WHERE visible AND kind = 'observation';
CREATE INDEX observations_by_hand ON observations (project, position, session) WHERE visible AND kind <> 'observation';
