"""Observing: stored messages are turned into observations, batch by batch."""
