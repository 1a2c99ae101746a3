"""Context packs and the working-memory block: choosing rows that fit a token budget, and printing them."""
