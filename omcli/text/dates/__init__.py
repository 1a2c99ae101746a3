"""Dates: instants, and dates as people say them."""
