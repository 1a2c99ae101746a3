"""Dates: instants, and dates in natural language."""
