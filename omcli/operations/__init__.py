"""The use cases behind the commands, such as observing, compacting and forgetting. Most return an immutable report."""
