"""Rewriting of datasets: reshard, edit, append and salvage."""
