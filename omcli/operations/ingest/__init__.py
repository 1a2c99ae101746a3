"""Ingesting transcripts: storing each message once, in its session."""
