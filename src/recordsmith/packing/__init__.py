"""Pack samples into shards: plan, write, verify, publish."""

from recordsmith.packing.images import apply_image_options, find_image_note
from recordsmith.packing.pack import finish, pack, plan, run
from recordsmith.packing.pack_plan import PackPlan
from recordsmith.packing.pack_report import PackReport
from recordsmith.packing.planning import Plan, make_plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.sample_encoder import SampleEncoder

__all__ = [
    "PackPlan",
    "PackReport",
    "Plan",
    "Recipe",
    "SampleEncoder",
    "apply_image_options",
    "find_image_note",
    "finish",
    "make_plan",
    "pack",
    "plan",
    "run",
]
