"""Consolidating: the daily upkeep of a store."""
