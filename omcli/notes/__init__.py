"""Daily notes on disk: the one place that reads, moves and writes them."""
