"""Readers of other tools' transcripts: a module or folder per format, listed in `table`."""
