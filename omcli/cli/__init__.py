"""The mouth: parse flags, call one operation, render its report."""
