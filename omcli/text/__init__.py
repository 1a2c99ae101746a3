"""Text processing that does not depend on the memory: terms, anchors, dates, secrets, similarity."""
