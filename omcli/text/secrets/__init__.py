"""Secrets in text, found and removed."""
