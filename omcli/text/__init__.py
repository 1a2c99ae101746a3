"""Text processing that does not depend on the memory, such as terms, anchors, dates, secrets and similarity."""
