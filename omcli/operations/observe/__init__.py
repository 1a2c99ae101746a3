"""Observing: turn stored messages into observations, batch by batch."""
