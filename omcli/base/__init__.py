"""Records, lazily compiled patterns, and errors: the basis of all other packages."""
