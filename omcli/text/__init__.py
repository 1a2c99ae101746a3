"""Text processing, independent of memory: terms, anchors, dates, secrets, similarity."""
