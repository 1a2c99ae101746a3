-- The most important rows of a session, and those of a project that other sessions should know, by type or made by hand,
-- the later first among equals: a pack chooses from them however old they are.
CREATE INDEX observations_by_importance ON observations (session, importance, position) WHERE visible;
CREATE INDEX observations_of_type_by_importance ON observations (project, type, importance, position, session)
    WHERE visible AND kind = 'observation';
CREATE INDEX observations_by_hand_by_importance ON observations (project, importance, position, session)
    WHERE visible AND kind <> 'observation';
