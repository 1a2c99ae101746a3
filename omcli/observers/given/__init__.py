"""The observer that is no model of ours: an agent is shown what waits, and hands in what it makes of it."""
