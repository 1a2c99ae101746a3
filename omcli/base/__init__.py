"""Records, patterns and errors: the ground everything else stands on."""
