"""Where values come from: flags, environment, defaults."""
