"""Interfaces to language models: prompts, replies, and JSON schemas of replies."""
