"""Settings and their sources: flags, environment variables, files, presets, defaults."""
