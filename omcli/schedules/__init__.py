"""Scheduled jobs: a module per scheduler, listed in `table`."""
