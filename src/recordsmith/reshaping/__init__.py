"""Records -> records in other shards: whole frames are copied, with the checksums they had."""

from recordsmith.reshaping.salvage import salvage
from recordsmith.reshaping.salvage_report import SalvagedShard, SalvageReport

__all__ = ["SalvageReport", "SalvagedShard", "salvage"]
