"""Domain model: messages, rows, batches and operations, with their rules. It does no input or output."""
