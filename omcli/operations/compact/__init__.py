"""Compacting: reducing a session to a token target and printing it."""
