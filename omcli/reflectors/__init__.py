"""Reflectors: many rows into fewer, by rules or by a model."""
