"""Samples or records to complete datasets: packed, reshaped, edited, salvaged or forecast."""
