"""Pack samples into shards: plan, write, verify, publish."""

from recordsmith.packing.images import apply_image_options, find_image_note
from recordsmith.packing.pack import finish, pack, plan, run
from recordsmith.packing.pack_plan import PackPlan
from recordsmith.packing.pack_report import PackReport
from recordsmith.packing.planning import Plan, make_plan

__all__ = [
    "PackPlan",
    "PackReport",
    "Plan",
    "apply_image_options",
    "find_image_note",
    "finish",
    "make_plan",
    "pack",
    "plan",
    "run",
]
