"""Ingesting transcripts: each message is stored once, in its session."""
