"""Deep verification of ranking lists: their context and each of their Examples."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import MANIFEST_NAME, records_of
from recordsmith.examining import SchemaFile

D = rs.Defect
KINDS = {"int64": "int64_list", "float": "float_list", "bytes": "bytes_list"}


@pytest.fixture(scope="module")
def ranking(reference: Any) -> Any:
    """Makes the payload of a ranking list by protobuf: features as {key: (kind, values)}."""

    def fill(message: Any, features: dict[str, Any]) -> None:
        message.features.SetInParent()
        for key, (kind, values) in features.items():
            feature = message.features.feature[key]
            if kind is not None:
                getattr(feature, KINDS[kind]).value.extend(values)

    def make(context: dict[str, Any] | None, *examples: dict[str, Any]) -> bytes:
        message = reference.messages().ExampleListWithContext()
        if context is not None:
            fill(message.context, context)
        for features in examples:
            fill(message.examples.add(), features)
        return message.SerializeToString()

    return make


def _query(number: int) -> dict[str, Any]:
    return {"query": ("int64", [number])}


def _document(number: int, **more: Any) -> dict[str, Any]:
    return {"score": ("float", [number / 2]), "tokens": ("bytes", [b"a"] * (number % 3))} | more


def _good(ranking: Any, number: int) -> bytes:
    return ranking(_query(number), *map(_document, range(number % 4)))


def _defects(path: Any, **options: Any) -> list[rs.CorruptDataError]:
    report = rs.verify(path, deep=True, **options)
    for error in report.defects:
        assert error.record is not None
        place = records_of(rs.open(path)).locate_record(error.record)
        assert (error.path, error.offset) == (str(place.path), place.offset)
    return report.defects


def _found(path: Any, **options: Any) -> list[tuple[rs.Defect, int | None, str | None, str]]:
    return [(e.defect, e.record, e.feature, e.problem) for e in _defects(path, **options)]


def _part(problem: str) -> str:
    """The part of a list that a problem is in: `Example 1`, or `context`."""
    return problem.partition(" of the list: ")[0]


def test_good_lists(write: Any, tmp_path: Path, ranking: Any) -> None:
    """Lists may lack Examples, a context, features or values."""
    nothing = [b"", ranking(None, {}), ranking({}, {"score": (None, [])}, {})]
    lists = [_good(ranking, number) for number in range(50)]
    lists[7:7] = [*nothing, ranking(None, _document(1)), ranking(_query(3))]
    report = rs.verify(write(tmp_path / "a.tfrecord", [*nothing[:1] * 60, *lists]), deep=True)
    assert (report.is_good, report.unchecked) == (True, []), report.defects
    assert report.record_count == 115


@pytest.mark.parametrize("wrong", [0, 1, 3])
@pytest.mark.parametrize("bad", [0, 40, 99])
def test_an_example_of_another_kind(
    write: Any, tmp_path: Path, ranking: Any, bad: int, wrong: int
) -> None:
    lists = [ranking(_query(number), *map(_document, range(4))) for number in range(100)]
    examples = [_document(number) for number in range(4)]
    examples[wrong]["score"] = ("int64", [1])
    lists[bad] = ranking(_query(bad), *examples)
    (error,) = _defects(write(tmp_path / "a.tfrecord", lists))
    assert (error.defect, error.record, error.feature) == (D.FEATURE_KIND, bad, "score")
    assert _part(error.problem) == f"Example {wrong}"
    assert (error.found, error.expected.split(",")[0]) == ("int64", "float")


def test_a_context_of_another_kind(write: Any, tmp_path: Path, ranking: Any) -> None:
    """The same name in the context and in Examples means two features."""
    lists = [ranking({"x": ("int64", [1])}, {"x": ("float", [1])}) for _ in range(30)]
    lists[20] = ranking({"x": ("float", [1])}, {"x": ("float", [1])})
    (error,) = _defects(write(tmp_path / "a.tfrecord", lists))
    assert (error.defect, error.record, error.feature) == (D.FEATURE_KIND, 20, "x")
    assert _part(error.problem) == "context"
    assert (error.found, error.expected.split(",")[0]) == ("float", "int64")


def test_malformed_lists(write: Any, tmp_path: Path, ranking: Any, reference: Any) -> None:
    good = _good(ranking, 3)
    cut = rs.encode_example({"x": 1})[:-1]
    broken = reference.delimited(1, cut)
    first = reference.delimited(1, reference.example())
    odd = reference.delimited(1, reference.delimited(2, b"?"))
    wrong = [
        (good[:-1], D.MALFORMED_EXAMPLE, "ranking list: a length in it"),
        (good + broken, D.MALFORMED_EXAMPLE, "Example 3 of the list: "),
        (first + broken + good, D.MALFORMED_EXAMPLE, "Example 1 of the list: "),
        (first + reference.delimited(2, cut), D.MALFORMED_EXAMPLE, "context of the list: "),
        (good + odd, D.NOT_AN_EXAMPLE, ""),
        (b"\xff plain data", D.NOT_AN_EXAMPLE, "differs in type"),
        (rs.encode_example({"x": 1}), D.NOT_AN_EXAMPLE, "differs in type"),
    ]
    payloads = [payload for bad, *_ in wrong for payload in (good, bad, good)]
    found = _found(write(tmp_path / "a.tfrecord", payloads))
    assert [(defect, position) for defect, position, *_ in found] == [
        (defect, 3 * number + 1) for number, (_, defect, _) in enumerate(wrong)
    ]
    for (*_, problem), (*_, part) in zip(found, wrong, strict=True):
        assert part in problem


def test_pieces_of_a_context_are_joined(
    write: Any, tmp_path: Path, ranking: Any, reference: Any
) -> None:
    """Protobuf joins the pieces, so neither lacks the features of the other."""
    rules = {"query": {"required": True}, "user": {"required": True}}
    both = ranking(_query(1) | {"user": ("int64", [1])}, _document(1))
    user = {"user": ("int64", [2])}
    split = ranking(_query(1), _document(1)) + ranking(user)
    assert reference.parse("ExampleListWithContext", split).context.features.feature.keys() == (
        rules.keys()
    )
    lacking = ranking(_query(1)) + ranking(_query(1))
    path = write(tmp_path / "a.tfrecord", [both, split, lacking, both, ranking(None, _document(1))])
    document = {"format": "recordsmith-schema", "payload": "ELWC", "context": rules}
    schema = SchemaFile.from_json(document | {"other_features": "allowed"})
    assert [(defect, at, key) for defect, at, key, _ in _found(path, schema=schema)] == [
        (D.MISSING_FEATURE, 2, "user"),
        (D.MISSING_FEATURE, 4, "query"),
        (D.MISSING_FEATURE, 4, "user"),
    ]


def test_against_the_schema_of_a_manifest(write: Any, tmp_path: Path, ranking: Any) -> None:
    """The manifest has no number of Examples, so no feature of Examples is required."""
    lists = [_good(ranking, number) for number in range(20)]
    write(tmp_path / "a.tfrecord", lists)
    folder = tmp_path / "out"
    rs.reshard(tmp_path / "a.tfrecord", folder)
    assert rs.verify(folder, deep=True).is_good
    document = json.loads((folder / MANIFEST_NAME).read_bytes())
    assert document["schema"]["payload"] == "ELWC"
    document["schema"]["examples"]["tokens"]["max_length"] = 1
    del document["schema"]["examples"]["score"]
    document["schema"]["context"]["user"] = document["schema"]["context"]["query"]
    (folder / MANIFEST_NAME).write_text(json.dumps(document))
    expected = []
    for position in range(20):
        expected.append((D.MISSING_FEATURE, position, "user", "context of the list"))
        for number in range(position % 4):
            place = f"Example {number} of the list"
            expected.append((D.UNEXPECTED_FEATURE, position, "score", place))
            if number % 3 > 1:
                expected.append((D.FEATURE_SHAPE, position, "tokens", place))
    (shard,) = folder.glob("*.tfrecord")
    report = rs.verify(folder, deep=True)
    assert sorted(
        (error.defect, error.record, error.feature, error.detail.split(":")[0])
        for error in report.defects
        if error.path == str(shard) and error.record is not None
    ) == sorted(expected)


def test_as_many_examples_as_records_do_not_make_a_feature_required(
    write: Any, tmp_path: Path, ranking: Any
) -> None:
    """Three Examples have `tokens`, and there happen to be three records."""
    more = [_document(1)] * 3
    plain = [{"score": ("float", [1.0])}] * 2
    lists = [ranking(_query(0), *more), ranking(_query(1)), ranking(_query(2), *plain)]
    write(tmp_path / "a.tfrecord", lists)
    assert rs.inspect(tmp_path / "a.tfrecord").schema.sections["examples"]["tokens"].present == 3
    rs.reshard(tmp_path / "a.tfrecord", tmp_path / "out")
    assert rs.verify(tmp_path / "out", deep=True).is_good


def test_rules_of_a_file(write: Any, tmp_path: Path, ranking: Any) -> None:
    lists = [_good(ranking, number) for number in range(30)]
    path = write(tmp_path / "a.tfrecord", lists)
    rules = rs.schema(path)
    assert rules.sections["context"]["query"].required
    assert not rules.sections["examples"]["score"].required
    assert SchemaFile.from_json(rules.to_json()) == rules
    assert _found(path, schema=rules) == []
    document = rules.to_json()
    document["examples"]["score"] |= {"required": True, "max": 1.0}
    document["examples"]["tokens"] |= {"allowed": ["a"]}
    document["context"]["query"] |= {"max": 27}
    lists[10] = ranking(_query(10), _document(1), {"tokens": ("bytes", [b"a"])})
    lists[11] = ranking(_query(11), _document(0), _document(3), _document(1))
    lists[12] = ranking(_query(12), {**_document(1), "tokens": ("bytes", [b"a", b"b"])})
    path = write(tmp_path / "b.tfrecord", lists)
    found = _found(path, schema=SchemaFile.from_json(document))
    assert [
        (defect, position, key, _part(problem)) for defect, position, key, problem in found
    ] == [
        (D.MISSING_FEATURE, 10, "score", "Example 1"),
        (D.FEATURE_VALUE, 11, "score", "Example 1"),
        (D.FEATURE_VALUE, 12, "tokens", "Example 0"),
        *[(D.FEATURE_VALUE, at, "query", "context") for at in (28, 29)],
    ]
    assert "every Example" in found[0][3]


def test_a_context_in_pieces_that_are_all_empty(write: Any, tmp_path: Path, ranking: Any) -> None:
    """An empty context lacks required features, however often it is repeated."""
    empty = b"\x12\x00"
    lists = [ranking(None, _document(1)) + empty * pieces for pieces in range(4)]
    path = write(tmp_path / "a.tfrecord", [ranking(_query(1), _document(1)), *lists])
    rules = SchemaFile.from_json(
        {
            "format": "recordsmith-schema",
            "payload": "ELWC",
            "context": {"query": {"kind": "int64", "required": True, "max": 9}},
            "other_features": "allowed",
        }
    )
    found = _found(path, schema=rules)
    assert [error[:3] for error in found] == [
        (D.MISSING_FEATURE, number, "query") for number in (1, 2, 3, 4)
    ]


def test_images_in_lists(write: Any, tmp_path: Path, ranking: Any, images: ModuleType) -> None:
    jpeg = images.jpeg(1)
    image = {"image/encoded": ("bytes", [jpeg])}
    cut = {"image/encoded": ("bytes", [jpeg[: len(jpeg) // 2]])}
    wide = image | {"image/width": ("int64", [1])}
    lists = [ranking(image, image, image), ranking(image, image, cut), ranking(cut, wide)]
    path = write(tmp_path / "a.tfrecord", lists)
    report = rs.verify(path, deep=True)
    assert report.image_count == 8
    assert [(e.defect, e.record, _part(e.problem)) for e in report.defects] == [
        (D.UNREADABLE_IMAGE, 1, "Example 1"),
        (D.UNREADABLE_IMAGE, 2, "context"),
        (D.IMAGE_SIZE, 2, "Example 0"),
    ]


@given(
    records=st.lists(
        st.tuples(
            st.none() | st.sampled_from(["int64", "float"]),
            st.lists(st.sampled_from(["int64", "float", None]), max_size=4),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_kinds_against_a_plain_count(
    records: list[Any], tmp_path_factory: pytest.TempPathFactory, ranking: Any, write: Any
) -> None:
    """Exactly the Examples whose kind the rule does not allow are reported."""
    lists, expected = [ranking(_query(0), _document(0))], []
    for position, (context, examples) in enumerate(records, 1):
        made = [{} if kind is None else {"x": (kind, [1])} for kind in examples]
        lists.append(ranking(_query(1) | ({} if context is None else {"x": (context, [1])}), *made))
        expected += [(position, "context of the list")] * (context == "float")
        expected += [
            (position, f"Example {number} of the list")
            for number, kind in enumerate(examples)
            if kind == "int64"
        ]
    rules = {
        "format": "recordsmith-schema",
        "payload": "ELWC",
        "other_features": "allowed",
        "context": {"x": {"kind": "int64"}},
        "examples": {"x": {"kind": "float"}},
    }
    path = write(tmp_path_factory.mktemp("lists") / "a.tfrecord", lists)
    found = rs.verify(path, schema=SchemaFile.from_json(rules)).defects
    assert [(error.record, error.detail.split(":")[0]) for error in found] == expected


def test_real_lists(shared_data: Path) -> None:
    seen = 0
    for path in sorted((shared_data / "zoo" / "tensorflow+ranking").glob("*.tfrecord")):
        report = rs.verify(path, deep=True)
        assert (report.is_good, report.unchecked) == (True, [])
        seen += report.record_count
    assert seen
