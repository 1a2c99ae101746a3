"""Runs of the real clients from npm, offline, against a model server on the loopback."""
