"""The prose that models are given; data, not code."""
