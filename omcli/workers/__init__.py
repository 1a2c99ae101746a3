"""Work that goes on in the background when whoever asked for it has ended."""
