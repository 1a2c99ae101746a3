"""Reflecting: rows are folded into fewer, and lasting facts are written as items."""
