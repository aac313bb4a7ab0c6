"""Measures how fast a dataset loads on this machine, and what limits it."""

from recordsmith.loading.measuring.bench import bench
from recordsmith.loading.measuring.bench_report import BenchReport

__all__ = ["BenchReport", "bench"]
