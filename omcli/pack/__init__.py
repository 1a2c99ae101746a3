"""Context packs and the working-memory block: rows chosen to fit a token budget, and laid out."""
