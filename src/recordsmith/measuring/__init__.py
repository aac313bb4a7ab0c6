"""Measure how fast a dataset loads on this machine, and find out what would make it faster.

`selection` chooses what to load, `alternatives` what else to try, `image_sample` packs some
images with tiles and at a smaller size, `trial` measures one alternative, `bench_report` holds the
results, `advice` interprets them, and `bench` combines these. All advice is based on measurements.
"""

from recordsmith.measuring.bench import bench
from recordsmith.measuring.bench_report import BenchReport, Measured, Trial

__all__ = ["BenchReport", "Measured", "Trial", "bench"]
