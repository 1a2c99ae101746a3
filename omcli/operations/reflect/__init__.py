"""Reflecting: folding rows into fewer, and writing lasting facts as items."""
