"""What does a dataset hold, in figures? Of each feature, of classes, of pictures, of duplicates."""

from recordsmith.examining.statistics.dataset_statistics import Statistics, statistics

__all__ = [
    "Statistics",
    "statistics",
]
