"""Rewriting of datasets: reshard, edit, append and salvage."""

from recordsmith.reshaping.append import AppendReport, append
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.reshard import ReshardReport, edit, reshard
from recordsmith.reshaping.salvage import SalvagedShard, SalvageReport, salvage

__all__ = [
    "AppendReport",
    "Edits",
    "ReshardReport",
    "SalvageReport",
    "SalvagedShard",
    "append",
    "edit",
    "reshard",
    "salvage",
]
