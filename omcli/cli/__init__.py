"""The command line: parsing options, calling an operation, printing its report."""
