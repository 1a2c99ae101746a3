"""Compacting: a session is brought down to a token target and printed."""
