"""Computes statistics of a dataset: features, classes, images and duplicates."""

from recordsmith.examining.stats.dataset_statistics import Statistics, statistics

__all__ = [
    "Statistics",
    "statistics",
]
