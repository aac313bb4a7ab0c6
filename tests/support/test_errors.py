"""The exceptions: their tree, the message that each makes from its fields, pickle and copy."""

from __future__ import annotations

import builtins
import copy
import inspect
import json
import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.support import errors, words
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    ForbiddenFileError,
    FunctionError,
    MissingExtraError,
    MissingFileError,
    NotAnExampleError,
    OptionError,
    RecordsmithError,
    SourceError,
    located,
    naming_options,
    option,
)

DRAWN = re.findall(r"[├└]── (\w+)\((\w+)\)", errors.__doc__ or "")
CLASSES = {
    name: member
    for name, member in vars(errors).items()
    if inspect.isclass(member) and issubclass(member, Exception)
}

MESSAGES: list[tuple[RecordsmithError, str]] = [
    (RecordsmithError("it failed"), "it failed"),
    (RecordsmithError("it failed", remedy="Try again."), "it failed. Try again."),
    (
        OptionError(option="batch_size", value=0, expected="a positive integer"),
        "batch_size must be a positive integer, got 0",
    ),
    (OptionError(option="out", expected="a path"), "out must be a path"),
    (
        OptionError(f"{option('shrink')} needs an extra", remedy=f"Drop {option('shrink', True)}."),
        "shrink needs an extra. Drop shrink=True.",
    ),
    (
        OptionError("x is a URL", option="path", value="x", expected="a local path"),
        "x is a URL; expected a local path",
    ),
    (OptionError("a mark", option="where", excerpt=("  a = 1", "    ^")), "a mark\n  a = 1\n    ^"),
    (SourceError("no rows to pack"), "no rows to pack"),
    (SourceError("2 images are missing", ["a.jpg", "b.jpg"]), "2 images are missing"),
    (SourceError("it is empty", path="t.csv"), "t.csv: it is empty"),
    (
        SourceError("is not a number", path="t.csv", line=3, sample="row 2", remedy="Fix it."),
        "t.csv, line 3: row 2: is not a number. Fix it.",
    ),
    (
        SourceError("many:", [f"{number}" for number in range(102)], lists_problems=True),
        "many:\n" + "".join(f"  {number}\n" for number in range(100)) + "  … and 2 more",
    ),
    (
        CorruptDataError(
            Defect.PAYLOAD_CRC,
            "the payload does not match its checksum",
            found="00",
            expected="ff",
            remedy="Fetch the file again.",
            path="näm\udcff e",
            record=0,
            offset=0,
        ),
        (
            "näm\\udcff e, record 0, byte 0: payload-crc-mismatch: the payload does not match its "
            "checksum: found 00, expected ff. Fetch the file again."
        ),
    ),
    (CorruptDataError(Defect.EMPTY_FILE, "it is empty"), "empty-file: it is empty"),
    (DataError(Defect.EMPTY_FILE, "it is empty", path="a"), "a: empty-file: it is empty"),
    (
        NotAnExampleError("Event", "Examples"),
        (
            "the records are TensorBoard events; expected Examples. Read this log with "
            "TensorBoard, or its records as bytes with records()."
        ),
    ),
    (
        CorruptDataError(Defect.RECORD_COUNT, "records of the shard", found="5", path="a"),
        "a: record-count-mismatch: records of the shard: found 5",
    ),
    (
        CorruptDataError(Defect.IMAGE_FORMAT, "a GIF", expected="a JPEG", feature="x", record=1),
        "record 1: image-format-mismatch: a GIF; expected a JPEG",
    ),
    (
        FileAccessError(28, "no space is left", "a/b", operation="write", remedy="Free some."),
        "cannot write a/b: no space is left. Free some.",
    ),
    (MissingFileError(2, "no such file", "a/b"), "cannot read a/b: no such file"),
    (
        ForbiddenFileError(13, "permission denied", "a", operation="list"),
        "cannot list a: permission denied",
    ),
    (
        MissingExtraError("extra", "package"),
        (
            "this needs package, which is not installed. "
            "Install it: pip install 'recordsmith[extra]'"
        ),
    ),
    (FunctionError("map_examples raised", path="a", record=3, offset=4), "map_examples raised"),
]
"""An error of each kind, and its whole message."""


def test_the_table_has_every_class() -> None:
    assert {type(error).__name__ for error, _ in MESSAGES} == CLASSES.keys()


EXAMPLES = [error for error, _ in MESSAGES]


class Lines:
    """Its `repr` has lines, as that of a Dataset."""

    def __repr__(self) -> str:
        return "Lines(\n  2)"


@pytest.mark.parametrize(("error", "message"), MESSAGES)
def test_messages_are_made_of_the_fields(error: RecordsmithError, message: str) -> None:
    assert str(error) == message
    document = error.to_json()
    assert (document["error"], document["message"]) == (type(error).__name__, message)


def test_json_has_the_fields_that_are_set() -> None:
    error = CorruptDataError(Defect.PAYLOAD_CRC, "it differs", path="a", record=0, found="00")
    assert json.loads(json.dumps(error.to_json())) == {
        "error": "CorruptDataError",
        "message": "a, record 0: payload-crc-mismatch: it differs: found 00",
        "problem": "it differs",
        "defect": "payload-crc-mismatch",
        "path": "a",
        "record": 0,
        "found": "00",
    }
    many = SourceError("2 images are missing", ["a", "b"], lists_problems=True).to_json()
    assert (many["problems"], many["problem_count"]) == (["a", "b"], 2)


def test_each_interface_has_its_own_names_of_options() -> None:
    error = OptionError(option="boxes", value="x", expected=f"{option('boxes', 'clip')} or none")
    with naming_options(lambda name, value: f"--{name} {value}"):
        lines = error.lines
    assert error.lines == ("boxes must be boxes='clip' or none, got 'x'",)
    assert lines == ("--boxes None must be --boxes 'clip' or none, got 'x'",)


def test_tree_is_as_drawn_in_the_docstring() -> None:
    assert {"RecordsmithError", *(name for name, _ in DRAWN)} == CLASSES.keys()
    for name, parent in DRAWN:
        assert issubclass(CLASSES[name], RecordsmithError)
        assert issubclass(CLASSES[name], CLASSES.get(parent) or getattr(builtins, parent))


def test_no_error_is_of_two_kinds() -> None:
    """A handler of one kind catches no other: only DataError and FileAccessError have kinds."""
    kinds = set(CLASSES.values()) - {RecordsmithError, DataError, FileAccessError}
    for error in EXAMPLES:
        assert sum(isinstance(error, kind) for kind in kinds) == (type(error) in kinds)


# -- pickle and copy: frameworks send errors from their workers -----------------------------------

_TEXT = st.text(st.characters(exclude_categories=[]), max_size=12)
_NUMBER = st.none() | st.integers(0, 2**63)
_NAME = st.none() | _TEXT
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "problem": _TEXT,
    "remedy": _TEXT,
    "found": _TEXT,
    "expected": _TEXT,
    "operation": _TEXT,
    "reason": _TEXT,
    "extra": _TEXT,
    "package": _TEXT,
    "option": _NAME,
    "sample": _NAME,
    "feature": _NAME,
    "function": _NAME,
    "value": st.none() | st.integers() | _TEXT | st.binary(max_size=9) | st.builds(object),
    "path": _NAME,
    "line": _NUMBER,
    "record": _NUMBER,
    "offset": _NUMBER,
    "errno": st.none() | st.integers(1, 200),
    "defect": st.sampled_from(Defect),
    "payload": st.sampled_from([*errors.PAYLOAD_NAMES]),
    "excerpt": st.lists(_TEXT, max_size=3),
    "problems": st.lists(_TEXT, max_size=3),
    "records": st.lists(st.integers(0, 2**40), max_size=3),
    "lists_problems": st.booleans(),
}


def _errors_of(kind: type[RecordsmithError]) -> st.SearchStrategy[RecordsmithError]:
    return st.builds(kind, **{name: FIELDS[name] for name in inspect.signature(kind).parameters})


@given(st.sampled_from([*CLASSES.values()]).flatmap(_errors_of))
def test_errors_survive_pickling_and_copying(error: Any) -> None:
    copies = [pickle.loads(pickle.dumps(error, n)) for n in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in (*copies, copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert vars(other) == vars(error)
        assert str(other) == str(error)
        assert other.args == error.args
        assert other.to_json() == error.to_json()
    if isinstance(error, OSError):
        assert copies[0].errno == error.errno
    json.dumps(error.to_json(), ensure_ascii=True)


def test_defect_names_are_strings_that_programs_can_compare() -> None:
    for defect in Defect:
        assert str(defect) == f"{defect}" == defect.value
        assert Defect(defect.value) is defect
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", defect.value)
    names: list[str] = [*Defect]
    assert "payload-crc-mismatch" in names


def test_located_adds_what_is_unknown_inside() -> None:
    def place(outer: Any, **fields: int) -> Any:
        with pytest.raises(CorruptDataError) as caught, located("outer", 5, 5), located(*outer):
            raise CorruptDataError(Defect.PAYLOAD_CRC, "words", **fields)  # type: ignore[arg-type]
        return caught.value.path, caught.value.record, caught.value.offset

    assert place(("shard", 10, 1000), record=2, offset=30) == ("shard", 12, 1030)
    assert place(("shard", 10, 1000)) == ("shard", None, None)
    assert place(("inner", 1, 1), record=0, offset=0) == ("inner", 1, 1)


def test_located_is_only_for_damaged_data() -> None:
    with pytest.raises(KeyError), located("shard"):
        raise KeyError("another")


def test_names_of_files_are_shown_in_one_short_line() -> None:
    known = ["a\nb", "", "x" * 100_000, *(f"name {number}" for number in range(1_000_000))]
    hint = words.suggest_names("zz", known, "none")
    assert hint.startswith(r"available: 'a\nb', '', 'xxx")
    assert hint.endswith(" and 999,973 more")
    assert len(hint) < 1000
    assert words.suggest_names("zz", [], "none") == "none"
    assert words.suggest_names("namee 7", known, "none") == "did you mean 'name 7'?"


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("token", "tokens"),
        ("lable", "image/class/label"),
        ("image/class/lable", "image/class/label"),
        ("image/object/bbox/ymin", "image/objects/bbox/ymin"),
        ("image/class/text", None),  # next to the label, but another name
        ("image/objects/bbox/ymax", None),
        ("image/class/lab/x", None),  # as it has more in common than the rest
        ("//" * 100_000, None),
        ("zz", None),
    ],
)
def test_keys_are_similar_by_what_differs(name: str, similar: str | None) -> None:
    known = ["image/class/label", "image/objects/bbox/ymin", "tokens"]
    assert words.similar_key(name, known) == similar


# -- names from outside ----------------------------------------------------------------------------

HOSTILE = "a\ngood: 1 record\r\x1b[2J\u202e\u2028\x85\udcff"


@pytest.mark.parametrize(
    "error",
    [
        RecordsmithError(f"{HOSTILE} is wrong"),
        OptionError(f"{HOSTILE} is wrong"),
        OptionError(f"{HOSTILE} is wrong", excerpt=[f"  {HOSTILE}"]),
        SourceError(f"{HOSTILE} is wrong", [HOSTILE]),
        SourceError(f"{HOSTILE} is wrong", [HOSTILE, HOSTILE], lists_problems=True),
        CorruptDataError(Defect.PAYLOAD_CRC, HOSTILE, path=HOSTILE, record=0, feature=HOSTILE),
        FileAccessError(2, "it is missing", HOSTILE),
        FileAccessError(f"cannot read {HOSTILE}"),
        FunctionError(f"a function raised {HOSTILE}", path=HOSTILE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_name_in_a_message_makes_a_line(error: RecordsmithError) -> None:
    for other in (error, pickle.loads(pickle.dumps(error))):
        shown = str(other).split("\n")
        assert all(map(str.isprintable, shown))
        assert len(shown) == len(other.lines)
        assert HOSTILE in other.lines[0]


def test_the_message_that_pytorch_makes_is_not_changed() -> None:
    """Its loader makes an error again from the traceback that its worker printed."""
    message = "Caught OptionError in DataLoader worker process 0.\nOriginal Traceback:\n  File x"
    assert str(OptionError(message)) == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        ("a\nb", r"'a\nb'"),
        ("x" * 200, "'" + "x" * 79),
        (Lines(), "a Lines"),
        ([1, Lines()], "a list"),
    ],
)
def test_a_value_is_shown_in_one_line(value: object, text: str) -> None:
    assert errors.OptionError(option="x", value=value, expected="y").value == text
