"""Context packs and the working-memory block: choosing and printing what fits into a token budget."""
