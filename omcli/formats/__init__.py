"""Other tools' transcripts: one module each behind the table in `table`."""
