"""The tree of exceptions: who is whose child, what a message says, what survives a process."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from recordsmith import errors
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    FunctionError,
    MissingExtraError,
    OptionError,
    RecordsmithError,
    SourceError,
    located,
)

DRAWN = re.findall(r"[├└]── (\w+)\((\w+)\)", errors.__doc__ or "")

EXAMPLES = [
    RecordsmithError("words"),
    OptionError("words"),
    SourceError("words", ["first", "second"]),
    CorruptDataError(Defect.PAYLOAD_CRC, "words", path="näm\udcff e", position=0, offset=0),
    CorruptDataError(Defect.EMPTY_FILE, "words"),
    FileAccessError(28, "words"),
    MissingExtraError("extra", "package"),
    FunctionError("words", path="a", position=3, offset=4),
]


def test_tree_is_as_drawn_in_the_docstring() -> None:
    classes = {
        name: member
        for name, member in vars(errors).items()
        if inspect.isclass(member) and issubclass(member, Exception)
    }
    assert {"RecordsmithError", *(name for name, _ in DRAWN)} == classes.keys()
    for name, parent in DRAWN:
        assert issubclass(classes[name], RecordsmithError)
        assert issubclass(classes[name], getattr(__import__("builtins"), parent))


def test_whose_fault_it_is_can_be_told_apart() -> None:
    for one in EXAMPLES[1:]:
        assert sum(isinstance(one, kind) for kind in {type(e) for e in EXAMPLES[1:]}) == 1


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_and_copying(error: RecordsmithError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)
        assert getattr(other, "errno", None) == getattr(error, "errno", None)


def test_defect_names_are_strings_that_programs_can_compare() -> None:
    for defect in Defect:
        assert str(defect) == f"{defect}" == defect.value
        assert Defect(defect.value) is defect
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", defect.value)
    names: list[str] = [*Defect]
    assert "payload-crc-mismatch" in names


def test_message_says_where_what_and_why() -> None:
    error = CorruptDataError(Defect.LENGTH_CRC, "the reason", path="a/b", position=0, offset=0)
    assert str(error) == "a/b, record 0, byte 0: length-crc-mismatch: the reason"
    error = CorruptDataError(Defect.LENGTH_CRC, "the reason")
    assert str(error) == "length-crc-mismatch: the reason"


def test_missing_extra_says_what_to_install() -> None:
    assert "pip install 'recordsmith[torch]'" in str(MissingExtraError("torch", "PyTorch"))


def test_located_adds_path_and_where_counting_began() -> None:
    with pytest.raises(CorruptDataError) as caught, located("shard", 10, 1000):
        raise CorruptDataError(Defect.PAYLOAD_CRC, "words", position=2, offset=30)
    assert (caught.value.path, caught.value.position, caught.value.offset) == ("shard", 12, 1030)


def test_located_leaves_unknown_places_unknown() -> None:
    with pytest.raises(CorruptDataError) as caught, located("shard", 10, 1000):
        raise CorruptDataError(Defect.PAYLOAD_CRC, "words")
    assert (caught.value.path, caught.value.position, caught.value.offset) == ("shard", None, None)


def test_located_believes_the_innermost() -> None:
    with pytest.raises(CorruptDataError) as caught, located("outer", 5, 5), located("inner", 1, 1):
        raise CorruptDataError(Defect.PAYLOAD_CRC, "words", position=0, offset=0)
    assert (caught.value.path, caught.value.position, caught.value.offset) == ("inner", 1, 1)


def test_located_is_only_for_damaged_data() -> None:
    with pytest.raises(KeyError), located("shard"):
        raise KeyError("another")


def test_names_of_files_are_shown_in_one_short_line() -> None:
    known = ["a\nb", "", "x" * 100_000, *(f"name {number}" for number in range(1_000_000))]
    hint = errors.names_like("zz", known, "none")
    assert hint.startswith(r"there are 'a\nb', '', 'xxx")
    assert hint.endswith(" and 999,973 more")
    assert len(hint) < 1000
    assert errors.names_like("zz", [], "none") == "none"
    assert errors.names_like("namee 7", known, "none") == "did you mean 'name 7'?"
