"""Records, patterns and errors, for every other package."""
