"""Pack samples into shards: plan, write, verify, publish."""

from recordsmith.writing.packing.images import apply_image_options, find_image_note
from recordsmith.writing.packing.pack import finish, pack, plan, run
from recordsmith.writing.packing.pack_options import PackOptions, SampleEncoder
from recordsmith.writing.packing.pack_plan import PackPlan
from recordsmith.writing.packing.pack_report import PackReport
from recordsmith.writing.packing.shard_assignment import ShardAssignment, assign_shards

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
