-- The last rows of a session that say what is to be done, and how, hidden ones too: for the working-memory block of a
-- long session. Types of one row in seven: the others don't change the index.
CREATE INDEX observations_lasting ON observations (session, position) WHERE type IN
    ('request', 'question', 'decision', 'instruction', 'correction', 'preference', 'blocker', 'task', 'plan',
    'todo_updated');
