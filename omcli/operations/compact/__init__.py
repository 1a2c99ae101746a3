"""Compacting: reduce a session to a token target and print it."""
