"""Computes statistics of a dataset: features, classes, images and duplicates."""
