"""The verbs, one function per module, each returning a frozen report."""
