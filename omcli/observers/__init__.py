"""Messages to observations."""
