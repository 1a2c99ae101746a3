"""What the machine starts by itself: one module per scheduler behind the table in `table`."""
