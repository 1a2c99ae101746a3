"""Reflectors, which fold many rows into fewer, by rules or with a model."""
