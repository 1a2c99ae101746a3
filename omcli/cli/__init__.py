"""The command line: parse options, call one operation, print its report."""
