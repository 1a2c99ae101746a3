"""Observations to reflections."""
