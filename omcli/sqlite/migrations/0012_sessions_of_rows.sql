-- A session of imported rows or notes is one, with their times, also before its transcript arrives. Until now it had no agent.
UPDATE sessions SET
    agent = 'om',
    cwd = coalesce(cwd, (SELECT p.path FROM observations AS o JOIN projects AS p ON p.number = o.project
        WHERE o.session = sessions.number ORDER BY o.position LIMIT 1)),
    seen_at = (SELECT max(observed_at) FROM observations AS o WHERE o.session = sessions.number),
    first_at = (SELECT min(coalesce(event_at, observed_at)) FROM observations AS o WHERE o.session = sessions.number),
    last_at = (SELECT max(coalesce(event_at, observed_at)) FROM observations AS o WHERE o.session = sessions.number)
WHERE agent IS NULL AND EXISTS (SELECT 1 FROM observations AS o WHERE o.session = sessions.number);
