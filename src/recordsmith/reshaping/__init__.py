"""Records -> records in other shards: whole frames are copied, with the checksums they had."""

from recordsmith.reshaping.append import append
from recordsmith.reshaping.contract import Change, Selection
from recordsmith.reshaping.edit import edit
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.report import AppendReport, ReshardReport
from recordsmith.reshaping.reshard import reshard
from recordsmith.reshaping.salvage import salvage
from recordsmith.reshaping.salvage_report import SalvagedShard, SalvageReport
from recordsmith.reshaping.where import Where, parse_where

__all__ = [
    "AppendReport",
    "Change",
    "Edits",
    "ReshardReport",
    "SalvageReport",
    "SalvagedShard",
    "Selection",
    "Where",
    "append",
    "edit",
    "parse_where",
    "reshard",
    "salvage",
]
