"""The store as a file: what the fake cannot show."""
