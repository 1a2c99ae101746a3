"""Taking transcripts in: each message is stored once, in its session."""
