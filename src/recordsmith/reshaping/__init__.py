"""Records -> records in other shards: whole frames are copied, with the checksums they had."""

from recordsmith.reshaping.contract import Change, Selection
from recordsmith.reshaping.report import ReshardReport
from recordsmith.reshaping.reshard import reshard
from recordsmith.reshaping.salvage import salvage
from recordsmith.reshaping.salvage_report import SalvagedShard, SalvageReport

__all__ = [
    "Change",
    "ReshardReport",
    "SalvageReport",
    "SalvagedShard",
    "Selection",
    "reshard",
    "salvage",
]
