"""Samples -> shards: plan, write, prove, publish. Knows nothing of training."""

from recordsmith.building import Noted, complete_shards
from recordsmith.packing.pack import pack
from recordsmith.packing.pack_plan import PackPlan, ShardTask, plan
from recordsmith.packing.pictures import apply_picture_options, note_of_picture
from recordsmith.packing.planning import Plan, PlannedShard, make_plan
from recordsmith.packing.report import PackReport

__all__ = [
    "Noted",
    "PackPlan",
    "PackReport",
    "Plan",
    "PlannedShard",
    "ShardTask",
    "apply_picture_options",
    "complete_shards",
    "make_plan",
    "note_of_picture",
    "pack",
    "plan",
]
