"""Pack samples into shards: plan, write, verify, publish."""

from recordsmith.packing.images import apply_image_options, find_image_note
from recordsmith.packing.pack import finish, pack, plan, run
from recordsmith.packing.pack_options import PackOptions, SampleEncoder
from recordsmith.packing.pack_plan import PackPlan
from recordsmith.packing.pack_report import PackReport
from recordsmith.packing.shard_assignment import ShardAssignment, assign_shards

__all__ = [
    "PackOptions",
    "PackPlan",
    "PackReport",
    "SampleEncoder",
    "ShardAssignment",
    "apply_image_options",
    "assign_shards",
    "find_image_note",
    "finish",
    "pack",
    "plan",
    "run",
]
