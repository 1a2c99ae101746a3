"""The nouns and their rules, pure."""
