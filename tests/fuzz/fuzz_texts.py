"""What people write: conditions on records, and schema files.

The invariant: any text is a condition or an OptionError, and a condition reads again as the same;
any JSON is a schema file or an OptionError, and one that is read is written and read as the same.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from harness import mutated

from recordsmith.checking.schema_file import SchemaFile
from recordsmith.dataset import parse_where
from recordsmith.support.errors import CorruptDataError, OptionError

CONDITIONS = [
    b"image/class/label in (1, 2)",
    b'image/height >= 256 and not image/class/text == "daisy"',
    b"len(image/object/bbox/xmin) > 0 or missing(`a b`)",
    b"all(x) < -1.5e3 and (has(y) or z not in ('a', b'\\xff'))",
    b"0 < a <= 0x1f or not [(`d`.endswith('\\u00fc'))] or 1 <= len(b) != 2_000",
]
KINDS = ["int64", "float", "bytes", None, "int", 3]
ODD = [None, True, -1, 0, 1, 2**70, 1.5, "x", [], [1, 2], ["a"], {}, {"x": 1}]


class Fuzz:
    watches_memory = False
    reached = ("conditions", "refused conditions", "schema files", "refused schema files")

    def __init__(self, _: Path) -> None:
        self.last = b""

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        if dice.random() < 0.5:
            self.last = mutated(dice.choice(CONDITIONS), CONDITIONS, dice)
            try:
                where = parse_where(self.last.decode("utf-8", "replace"))
            except OptionError:
                counts["refused conditions"] += 1
                return
            assert parse_where(where.to_json()) == where
            counts["conditions"] += 1
            return
        document = schema_document(dice)
        self.last = json.dumps(document).encode()
        try:
            file = SchemaFile.from_json(document)
        except (ValueError, CorruptDataError):  # an OptionError is a ValueError
            counts["refused schema files"] += 1
            return
        again = SchemaFile.from_json(json.loads(json.dumps(file.to_json())))
        assert again.to_json() == file.to_json()
        counts["schema files"] += 1


def schema_document(dice: random.Random) -> Any:
    """One as it could be, with a value or two that could not."""
    rule: dict[str, Any] = {"kind": dice.choice(KINDS[:3]), "required": dice.random() < 0.5}
    document: dict[str, Any] = {
        "format": "recordsmith-schema",
        "version": 1,
        "payload": "Example",
        "features": {"a": rule, "b": {"kind": "int64", "required": True, "min": 0, "max": 3}},
    }
    for target in (rule, document):
        if dice.random() < 0.4:
            keys = [
                *target,
                "shape",
                "min_values",
                "max_values",
                "allowed",
                "min",
                "max",
                "content",
            ]
            target[dice.choice(keys)] = dice.choice([*ODD, *KINDS])
    return document
