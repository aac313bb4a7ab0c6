"""How fast can this dataset be loaded, on this machine, and what would make it faster?

`selection` says what is loaded and `ways` how else it could be, `smaller` packs some pictures at a
smaller side, `trial` measures one way, `report` is what is known so far, `advice` says in words
what that tells, `bench` brings these together. Nothing is said that was not measured.
"""

from recordsmith.measuring.bench import bench
from recordsmith.measuring.report import BenchReport, Measured, Trial

__all__ = ["BenchReport", "Measured", "Trial", "bench"]
