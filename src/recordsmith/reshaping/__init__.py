"""Records -> records in other shards: whole frames are copied, with the checksums they had."""

from recordsmith.reshaping.contract import Change, Selection
from recordsmith.reshaping.report import ReshardReport
from recordsmith.reshaping.reshard import reshard

__all__ = ["Change", "ReshardReport", "Selection", "reshard"]
