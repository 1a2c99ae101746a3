"""Finding messages and rows by their words: parsing a query, and ranking what matches."""
