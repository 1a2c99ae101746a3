"""The store as a file: what a store in memory cannot show."""
