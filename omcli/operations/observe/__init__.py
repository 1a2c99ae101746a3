"""Observing: turning stored messages into observations, batch by batch."""
