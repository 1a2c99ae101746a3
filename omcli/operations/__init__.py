"""Operations on a store, such as observing, compacting and forgetting. Most return an immutable report."""
