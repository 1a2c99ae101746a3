import sys

# Several processes import every test, and Hypothesis: they are faster when one has rewritten its assertions for all.
sys.dont_write_bytecode = False
