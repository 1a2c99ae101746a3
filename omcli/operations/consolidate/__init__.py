"""Consolidating: the daily maintenance of a store."""
