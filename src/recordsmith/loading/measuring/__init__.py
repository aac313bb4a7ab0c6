"""Measures how fast a dataset loads on this machine, and what limits it."""
