"""Text, without knowledge of memory: terms, anchors, dates, secrets, similarity."""
