"""Surveys as plain JSON values, so that other processes can collect them.

A survey is its attributes; only the classes listed here are restored.
"""

from __future__ import annotations

import base64
import threading
from collections import Counter
from typing import Any

import numpy as np

from recordsmith.buffers import array_from_json, array_to_json
from recordsmith.examining.stats.box_stats import BoxSurvey
from recordsmith.examining.stats.bytes_stats import BytesSurvey, FrequentValues
from recordsmith.examining.stats.duplicates import DuplicateSearch, SeenContents
from recordsmith.examining.stats.feature_stats import FeatureStatsSurvey
from recordsmith.examining.stats.image_stats import ImageSurvey
from recordsmith.examining.stats.label_texts import LabelTexts
from recordsmith.examining.stats.mask_stats import CountedMask, MaskSample
from recordsmith.examining.stats.number_stats import NumberSurvey
from recordsmith.examining.stats.places import FirstPlace
from recordsmith.examining.stats.record_survey import RecordSurvey, SharedSurveys
from recordsmith.examining.stats.sketches import (
    DistinctHashes,
    FrequentKeys,
    Pending,
    Quantiles,
    SortedTable,
)

_CLASSES = {
    each.__name__: each
    for each in (
        BoxSurvey,
        BytesSurvey,
        CountedMask,
        DistinctHashes,
        DuplicateSearch,
        FeatureStatsSurvey,
        FirstPlace,
        FrequentKeys,
        FrequentValues,
        ImageSurvey,
        LabelTexts,
        MaskSample,
        NumberSurvey,
        Pending,
        Quantiles,
        RecordSurvey,
        SeenContents,
        SharedSurveys,
        SortedTable,
    )
}
_SEQUENCES = {"list": list, "tuple": tuple, "set": set}
_MAPPINGS = {"Counter": Counter, "dict": dict}
_LOCK = "_lock"


def survey_to_json(value: Any) -> Any:
    """Return a survey, or a value in one, as plain JSON values."""
    name = type(value).__name__
    if isinstance(value, (np.ndarray, np.generic)):
        return array_to_json(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if isinstance(value, np.ufunc):
        return {"ufunc": value.__name__}
    if name in _MAPPINGS:
        pairs = [[survey_to_json(key), survey_to_json(one)] for key, one in value.items()]
        return {"mapping": name, "pairs": pairs}
    if name in _SEQUENCES:
        return {"sequence": name, "values": [*map(survey_to_json, value)]}
    assert _CLASSES[name] is type(value)
    if hasattr(value, "_settle"):  # less to send
        value._settle()  # noqa: SLF001 - a survey and its document belong together
    fields = {key: survey_to_json(one) for key, one in vars(value).items() if key != _LOCK}
    return {"class": name, "fields": fields, "has_lock": hasattr(value, _LOCK)}


def survey_from_json(document: Any) -> Any:
    """Restore what `survey_to_json` returned."""
    if not isinstance(document, dict):
        return document
    if "array" in document:
        return array_from_json(document)
    if "bytes" in document:
        return base64.b64decode(document["bytes"])
    if "dtype" in document:
        return np.dtype(document["dtype"])
    if "ufunc" in document:
        return {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}[document["ufunc"]]
    if "mapping" in document:
        pairs = ((survey_from_json(key), survey_from_json(one)) for key, one in document["pairs"])
        return _MAPPINGS[document["mapping"]](dict(pairs))
    if "sequence" in document:
        return _SEQUENCES[document["sequence"]](map(survey_from_json, document["values"]))
    kind = _CLASSES[document["class"]]
    survey: Any = kind.__new__(kind)
    fields = {key: survey_from_json(one) for key, one in document["fields"].items()}
    if document["has_lock"]:
        fields[_LOCK] = threading.Lock()
    vars(survey).update(fields)
    return survey
