"""Samples -> shards: plan, write, prove, publish. Knows nothing of training."""

from recordsmith.packing.pack import pack
from recordsmith.packing.pack_plan import PackPlan, plan
from recordsmith.packing.pictures import apply_picture_options, note_of_picture
from recordsmith.packing.planning import Plan, make_plan
from recordsmith.packing.report import PackReport

__all__ = [
    "PackPlan",
    "PackReport",
    "Plan",
    "apply_picture_options",
    "make_plan",
    "note_of_picture",
    "pack",
    "plan",
]
