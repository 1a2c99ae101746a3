"""Observing: turning messages into observations."""
