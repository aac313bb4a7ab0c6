"""Samples -> shards: plan, write, prove, publish. Knows nothing of training."""

from recordsmith.packing.pack import PackReport, pack
from recordsmith.packing.pictures import apply_picture_options, note_of_picture
from recordsmith.packing.plan import Plan, PlannedShard, make_plan

__all__ = [
    "PackReport",
    "Plan",
    "PlannedShard",
    "apply_picture_options",
    "make_plan",
    "note_of_picture",
    "pack",
]
