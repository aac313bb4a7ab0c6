"""Samples -> shards: plan, write, prove, publish. Knows nothing of training."""

from recordsmith.packing.pack import PackReport, pack
from recordsmith.packing.plan import Plan, PlannedShard, make_plan

__all__ = ["PackReport", "Plan", "PlannedShard", "make_plan", "pack"]
