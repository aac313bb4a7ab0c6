"""Computes statistics of a dataset: features, classes, images and duplicates."""

from recordsmith.checking.statistics.stats_report import StatsReport, stats

__all__ = [
    "StatsReport",
    "stats",
]
