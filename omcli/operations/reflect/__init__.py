"""Reflecting: fold rows into fewer, and write lasting facts as items."""
