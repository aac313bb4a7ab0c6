"""Conditions on the features of records, such as `label in (1, 2) and width > 100`."""

from recordsmith.dataset.where.expression import Where, parse_where

__all__ = ["Where", "parse_where"]
