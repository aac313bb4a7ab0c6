"""What a loader is asked for is looked at when it is made: keys, kinds, shapes, names."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.format.example import FeatureSpec, Schema, SchemaSurvey
from recordsmith.loading.features.declaration import declare_features
from recordsmith.loading.features.requests import resolve_requests
from recordsmith.loading.preview import Preview
from recordsmith.support.errors import Defect, OptionError

SEQUENCE = rs.encode_sequence_example({"id": 1}, {"tokens": [[1], [2, 3]]})


def schema_of(*examples: dict[str, Any] | bytes) -> Schema:
    payloads = [e if isinstance(e, bytes) else rs.encode_example(e) for e in examples]
    array = rs.BytesArray.from_values(payloads)
    survey = SchemaSurvey()
    survey.update(array.buffer, array.offsets[:-1], array.lengths)
    return survey.finish()


ALIKE = schema_of(
    {"label": 1, "score": 0.5, "name": "a", "point": [1.0, 2.0], "words": ["a", "b"]},
    {"label": 2, "score": 1.5, "name": b"\xff", "point": [3.0, 4.0], "words": ["c", "d"]},
)
UNLIKE = schema_of(
    {"some": 1, "list": [1, 2], "kind": 1, "names": ["a"], "nothing": []},
    {"list": [3], "kind": 0.5, "names": ["a", "b"]},
    {"some": 2, "list": [], "kind": 2, "names": []},
)


def resolve(
    feature: Any, schema: Schema, *, is_complete: bool = True, may_skip: bool = False
) -> dict[str, FeatureSpec]:
    features = feature if isinstance(feature, dict) else {"x": feature}
    preview = Preview(schema, is_complete, schema.features if is_complete else None)
    return resolve_requests(features, preview, may_skip=may_skip).specs


# -- what there is ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "key", "spec"),
    [
        (rs.Scalar("label"), "label", FeatureSpec("int64", ())),
        (rs.Scalar("score"), "score", FeatureSpec("float", ())),
        (rs.Tensor("point", (2,)), "point", FeatureSpec("float", (2,))),
        (rs.Tensor("point", (1, 2)), "point", FeatureSpec("float", (1, 2))),
        (rs.Tensor("label", (1,)), "label", FeatureSpec("int64", (1,))),
        (rs.Ragged("point"), "point", FeatureSpec("float", "ragged")),
        (rs.Padded("label"), "label", FeatureSpec("int64", "ragged")),
        (rs.Bytes("name"), "name", FeatureSpec("bytes", ())),
        (rs.Text("words", (2,)), "words", FeatureSpec("bytes", (2,))),
        (rs.Bytes("words", "ragged"), "words", FeatureSpec("bytes", "ragged")),
        (rs.Raw("name", (4,), "uint8"), "name", FeatureSpec("bytes", ())),
        (rs.Scalar("other", default=2), "other", FeatureSpec("int64", (), 2)),
        (rs.Scalar("other", default=0.5), "other", FeatureSpec("float", (), 0.5)),
        (rs.Scalar("score", default=2), "score", FeatureSpec("float", (), 2)),
        (rs.Text("other", default="none"), "other", FeatureSpec("bytes", (), "none")),
    ],
)  # fmt: skip
def test_kinds_and_shapes_that_are_read(feature: Any, key: str, spec: FeatureSpec) -> None:
    assert resolve(feature, ALIKE) == {key: spec}
    assert resolve(feature, ALIKE, is_complete=False, may_skip=True) == {key: spec}


@pytest.mark.parametrize(
    "feature",
    [
        rs.Ragged("some"), rs.Ragged("list"), rs.Padded("list"), rs.Bytes("names", "ragged"),
        rs.Scalar("some", default=0), rs.Position(),
    ],
)  # fmt: skip
def test_records_that_differ(feature: Any) -> None:
    resolve(feature, UNLIKE)


# -- what there is not -----------------------------------------------------------------------------

WRONG = [
    # feature, schema, words, is it wrong also where some records may be skipped
    (rs.Scalar("lable"), ALIKE, "'x': no record has 'lable'; did you mean 'label'\\?", True),
    (rs.Scalar("q"), ALIKE, "no record has 'q'; available: label, name, point, score, words", True),
    (rs.Ragged("q"), ALIKE, "no record has 'q'", True),
    (rs.Scalar("nothing"), UNLIKE, "no record has 'nothing'; it is there, but without v", True),
    (rs.Scalar("q"), schema_of({}), "no record has 'q'; the records have no features", True),
    (rs.Scalar("name"), ALIKE, "'name' is bytes; expected int64 or float", True),
    (rs.Ragged("words"), ALIKE, "'words' is bytes; expected int64 or float", True),
    (rs.Padded("label", fill=0.5), ALIKE, "'label' is int64; expected float", True),
    (rs.Text("label"), ALIKE, "'label' is int64; expected bytes", True),
    (rs.Raw("point", (2,), "float32"), ALIKE, "'point' is float; expected bytes", True),
    (rs.Boxes(labels="score"), ALIKE, "no record has 'image/object/bbox/ymin'", True),
    (rs.Scalar("point"), ALIKE, r"'point' has 2 values; expected 1 value for shape \(\)", True),
    (rs.Tensor("point", (3, 1)), ALIKE, r"2 values; expected 3 values for shape \(3, 1\)", True),
    (rs.Tensor("label", (2,)), ALIKE, "'label' has 1 value; expected 2 values", True),
    (rs.Scalar("point", default=1), ALIKE, "'point' has 2 values", True),
    (rs.Bytes("words"), ALIKE, "'words' has 2 values; expected 1 value", True),
    (rs.Tensor("list", (3,)), UNLIKE, "'list' has 0 to 2 values; expected 3 values", True),
    (rs.Scalar("list"), UNLIKE, "'list' has 0 to 2 values; expected 1 value", False),
    (rs.Scalar("some"), UNLIKE, "2 of 3 records have 'some'.*default", False),
    (rs.Scalar("kind"), UNLIKE, "'kind' has different kinds.*skip_errors", False),
    (rs.Scalar("label", default="a"), ALIKE, "'x': the default of feature 'label' is bytes", True),
    (rs.Scalar("label", default=0.5), ALIKE, "default of .* is float; expected int64", True),
    (rs.Tensor("point", (2,), default=[1]), ALIKE, r"1 value; expected shape \(2,\)", True),
    (rs.Tensor("point", [2]), ALIKE, r"'x': shape must be a tuple .*\[2\]", True),  # type: ignore[arg-type]
    (rs.Tensor("point", 2), ALIKE, "shape must be a tuple .* 2$", True),  # type: ignore[arg-type]
    (rs.Bytes("words", "raged"), ALIKE, "shape must be .* 'raged'", True),  # type: ignore[arg-type]
    (rs.Scalar(5), ALIKE, "'x': the feature name 5 is a int; expected a str", True),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("feature", "schema", "words", "is_always"), WRONG)
def test_what_records_cannot_give(
    feature: Any, schema: Schema, words: str, *, is_always: bool
) -> None:
    with pytest.raises(OptionError, match=words):
        resolve(feature, schema)
    if is_always:
        with pytest.raises(OptionError, match=words):
            resolve(feature, schema, may_skip=True)
    else:
        resolve(feature, schema, may_skip=True)


def test_of_the_first_records_only() -> None:
    def told(feature: Any, schema: Schema = UNLIKE) -> str:
        with pytest.raises(OptionError) as caught:
            resolve(feature, schema, is_complete=False)
        return str(caught.value)

    assert re.search(r"none .*first 3 .*'q'", told(rs.Scalar("q")))
    assert re.search(r"\b2 of .*first 3 .*'some'", told(rs.Scalar("some")))
    assert "0 to 2 values" in told(rs.Scalar("list"))
    assert "'label'?" in told(rs.Scalar("labl"), ALIKE)
    # a later one may have it
    assert resolve(rs.Ragged("q"), UNLIKE, is_complete=False)["q"].shape == "ragged"


def test_a_default_where_a_feature_has_no_kind() -> None:
    """In a record it can be there without a list: the default stands in, as in TensorFlow."""
    without_kind = schema_of({"k": 5}, b"\x0a\x07\x0a\x05\x0a\x01k\x12\x00", {"k": 6})
    assert without_kind.features["k"].min_length == 0
    resolve(rs.Scalar("k", default=1), without_kind)
    with raises(OptionError, option="shape"):
        resolve(rs.Scalar("k"), without_kind)


def test_records_that_are_no_examples() -> None:
    assert resolve(rs.Scalar("id"), schema_of(SEQUENCE, SEQUENCE))["id"].kind == "int64"
    with pytest.raises(rs.NotAnExampleError, match="other messages"):
        resolve(rs.Position(), schema_of(b"plain words"))
    mixed = schema_of({"k": 1}, b"plain words", {"k": 2})
    with raises(OptionError, option="skip_errors"):
        resolve(rs.Scalar("k"), mixed)
    assert resolve(rs.Scalar("k"), mixed, may_skip=True)["k"].kind == "int64"


# -- several features ------------------------------------------------------------------------------


def test_features_that_share_a_key() -> None:
    """Equal requests, or such of which one is narrower."""
    both = resolve({"a": rs.Scalar("label"), "b": rs.Scalar("label", dtype="int8")}, ALIKE)
    assert both == {"label": FeatureSpec("int64", ())}
    assert resolve({"a": rs.Bytes("name"), "b": rs.Raw("name", (2,), "uint8")}, ALIKE)
    pair = {"a": rs.Ragged("score"), "b": rs.Padded("score", fill=0.5)}
    assert resolve(pair, ALIKE)["score"].kind == "float"
    assert resolve(dict(reversed(pair.items())), ALIKE)["score"].kind == "float"
    default = np.array([1.0, 2.0])
    same = {"a": rs.Tensor("point", (2,), default=default),
            "b": rs.Tensor("point", (2,), default=[1, 2])}  # fmt: skip
    assert resolve(same, ALIKE)["point"].default is default


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (
            rs.Scalar("label"),
            rs.Ragged("label"),
            r"'a' and 'b' both read 'label', but one expects .*, shape \(\) and the other .* any ",
        ),
        (rs.Scalar("label"), rs.Bytes("label"), "shape .* and the other bytes, shape"),
        (rs.Scalar("label"), rs.Ragged("label"), "the same way in both"),
        (
            rs.Tensor("label", (5,)),
            rs.Boxes(labels="label"),
            "'a' and 'b' both read 'label'.*labels=None to Boxes",
        ),
        (rs.Scalar("label"), rs.Scalar("label", default=1), "other .* with the default 1"),
        (rs.Tensor("point", (2,)), rs.Tensor("point", (2, 1)), r"shape \(2, 1\)"),
        (
            rs.Tensor("point", (2,), default=np.array([1, 2])),
            rs.Tensor("point", (2,), default=np.array([1, 3])),
            "default",
        ),
    ],
)
def test_features_that_want_different_things_of_a_key(one: Any, other: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        resolve({"a": one, "b": other}, ALIKE)


# -- what was meant --------------------------------------------------------------------------------


def declare(features: Any, schema: Schema = ALIKE) -> dict[str, Any]:
    return declare_features(features, Preview(schema, is_complete=True, listed=schema.features))


def test_a_key_means_what_the_schema_says() -> None:
    assert declare({"a": "label", "b": "point", "c": "name", "d": "words", "e": "score"}) == {
        "a": rs.Scalar("label"),
        "b": rs.Tensor("point", (2,)),
        "c": rs.Bytes("name"),
        "d": rs.Bytes("words", (2,)),
        "e": rs.Scalar("score"),
    }
    assert declare({"a": "some", "b": "list", "c": "names", "d": rs.Scalar("x")}, UNLIKE) == {
        "a": rs.Ragged("some"),
        "b": rs.Ragged("list"),
        "c": rs.Bytes("names", "ragged"),
        "d": rs.Scalar("x"),
    }


@pytest.mark.parametrize(
    ("features", "schema", "words"),
    [
        ({"x": "lable"}, ALIKE, "'x': no record has 'lable'; did you mean 'label'"),
        ({"x": "nothing"}, UNLIKE, "no record has 'nothing'; it is there"),
        (
            {"x": "image/class/label"},
            schema_of({"image/object/class/label": [1, 2]}),
            r"in 'image/object/class/label': Boxes\(\)",
        ),
        ({"x": "kind"}, UNLIKE, "'x': 'kind' has different kinds"),
        (None, UNLIKE, "'kind' has different kinds"),
        ({"x": 5}, ALIKE, r"'x' is 5; expected a feature such as Scalar\(key\), or a key"),
        ({"x": rs.Scalar}, ALIKE, "expected a feature such as"),
        ({5: "label"}, ALIKE, "the name 5; expected a str"),
        (["label", 3], ALIKE, "has the item 3"),
        ("label", ALIKE, "features must be a list of keys"),
        ({}, ALIKE, "features is empty"),
        (
            {"x": rs.Padded("label"), "x_lengths": "score"},
            ALIKE,
            "features 'x' and 'x_lengths' both make the entry 'x_lengths'",
        ),
        ({"x_labels": "label", "x": rs.Boxes()}, ALIKE, "'x_labels' and 'x' both make"),
        ({"x": rs.Boxes(of="y"), "y": "label"}, ALIKE, "'y' is not an Image"),
    ],
)
def test_features_that_are_none(features: Any, schema: Schema, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        declare(features, schema)


# -- through a loader ------------------------------------------------------------------------------


def test_only_the_first_records_are_looked_at(tmp_path: Any) -> None:
    dataset = written(tmp_path, [{"k": 1}] * 70 + [{"k": [1, 2], "later": 3}])
    with rs.Loader(dataset, {"k": "k"}, batch_size=70, threads=0) as loader:
        batches = iter(loader)
        assert next(batches)["k"].shape == (70,)
        with pytest.raises(rs.CorruptDataError) as caught:
            next(batches)
    error = caught.value
    assert (error.defect, error.feature, error.record) == (Defect.FEATURE_SHAPE, "k", 70)
    assert (error.found, error.expected) == ("2 values", "shape ()")
    (batch,) = rs.Loader(dataset, {"k": rs.Ragged("later")}, batch_size=80, threads=0)
    assert batch["k"].tolist() == [[]] * 70 + [[3]]
    with raises(OptionError, option="features"):
        rs.Loader(dataset, {"k": rs.Scalar("later")}, batch_size=80)
    assert len(dataset.schema.features) == 2  # now it is known, so all are spoken of
    with raises(OptionError, option="default"):
        rs.Loader(dataset, {"k": rs.Scalar("later")}, batch_size=80)


# -- keys that no record has -----------------------------------------------------------------------

BOXES = {key: [0.5] for key in ("o/ymin", "o/xmin", "o/ymax", "o/xmax")}
ABSENT = [
    rs.Ragged("token"), rs.Padded("token"), rs.Present("token"), rs.Text("token", "ragged"),
    rs.Bytes("token", "ragged"), rs.Bytes("token"), rs.Raw("token", (1,), "uint8"),
    rs.Scalar("token"), rs.Tensor("token", (3,)), rs.Image("token", 8), rs.Mask("token", size=8),
    rs.Patches(8, 1, key="token"), rs.Boxes(("token", *tuple(BOXES)[1:]), None), "token",
]  # fmt: skip


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """200 records without a manifest, of which the last has two more features."""
    record = {"tokens": [1, 2, 3], "label": 1, **BOXES}
    folder = tmp_path_factory.mktemp("many")
    return written(folder, [record] * 199 + [record | {"rare": [5], "ratio": [0.5]}])


@pytest.fixture
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a search for a key take too long when a loader is created."""
    monkeypatch.setattr("recordsmith.loading.features.requests._SEARCHED_BYTES", -1)


@pytest.fixture
def _too_long(_long: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a search for a key take too long at any time."""
    monkeypatch.setattr("recordsmith.loading.batches.key_watch._SEARCHED_BYTES", -1)


@pytest.mark.parametrize("feature", ABSENT)
def test_a_key_that_no_record_has(many: rs.Dataset, feature: Any) -> None:
    dataset = rs.open(many.shards[0].location)
    with raises(OptionError, option="features", value="token"):
        rs.Loader(dataset, {"x": feature}, batch_size=4)


@pytest.mark.usefixtures("_too_long")
@pytest.mark.parametrize("feature", ABSENT)
def test_a_key_that_is_similar_to_one_of_the_first_records(many: rs.Dataset, feature: Any) -> None:
    dataset = rs.open(many.shards[0].location)
    with raises(OptionError, option="features", value="token", match="'tokens'"):
        rs.Loader(dataset, {"x": feature}, batch_size=4)
    with raises(OptionError, value="image/object/bbox/ymin"):  # none of its keys is there
        rs.Loader(dataset, {"x": rs.Boxes()}, batch_size=4)


def test_a_key_that_a_later_record_has(many: rs.Dataset) -> None:
    """Also where it is similar to another one, or no selected record has it."""
    dataset = rs.open(many.shards[0].location)
    for selected in (dataset, dataset.take(100), dataset.take(10)):
        for key, dtype in (("rare", np.int64), ("ratio", np.float32)):  # as in that record
            features = {"x": rs.Padded(key), "has": rs.Present(key)}
            batches = [*rs.Loader(selected, features, batch_size=50)]
            assert {batch["x"].dtype for batch in batches} == {np.dtype(dtype)}
            assert sum(batch["has"].sum() for batch in batches) == (selected is dataset)
    assert len(dataset.schema.features) == 8  # now it is known, also of selected records
    for selected in (dataset.take(100), dataset.take(10)):
        (batch,) = rs.Loader(selected, {"x": "ratio", "p": rs.Present("rare")}, batch_size=100)
        assert batch["x"].values.dtype == np.float32  # the kind of other records
        assert not len(batch["x"].values)
        assert not batch["p"].any()
        with raises(OptionError, option="features", value="rar"):
            rs.Loader(selected, {"x": rs.Ragged("rar")}, batch_size=4)


def test_a_key_whose_lists_are_empty_in_the_selected_records(tmp_path: Path) -> None:
    dataset = written(tmp_path, [{"x": []}] * 70 + [{"x": [0.5, 1.5]}] * 2)
    assert dataset.schema.features["x"].kind == "float"
    (batch,) = rs.Loader(dataset.take(5), ["x"], batch_size=5)
    assert batch["x"].values.dtype == np.float32


EPOCHS: list[dict[str, Any]] = [
    {}, {"shuffle": True}, {"rank": 1, "world_size": 3}, {"last_batch": "drop"},
    {"last_batch": "pad"}, {"filter": lambda example: example["x"] is None}, {"epochs": None},
    {"shuffle": rs.BlockShuffle()}, {"threads": 0, "skip_errors": 1},
    {"worker": 1, "worker_count": 2},
]  # fmt: skip


@pytest.mark.usefixtures("_long")
@pytest.mark.parametrize("choose", [None, lambda dataset: dataset.take(90), rs.Weighted])
@pytest.mark.parametrize("options", EPOCHS, ids=lambda options: "-".join(options) or "plain")
def test_an_epoch_in_which_no_record_has_a_key(
    many: rs.Dataset, options: dict[str, Any], choose: Any
) -> None:
    dataset: Any = rs.open(many.shards[0].location)
    if choose is rs.Weighted:
        dataset = rs.Weighted(dataset, weights="label")
        options = {**options, "shuffle": True}
    elif choose is not None:
        dataset = choose(dataset)

    def first_epoch(key: str) -> int:
        loader = rs.Loader(dataset, {"x": rs.Ragged(key)}, batch_size=7, **options)
        count = 0
        for batch in loader:
            count += len(batch["x"])
            if loader.epoch:
                break
        return count

    first_epoch("rare")  # raises nothing: another record may have it
    with raises(OptionError, option="features", value="other"):
        first_epoch("other")


@pytest.mark.usefixtures("_long")
def test_a_resumed_epoch_in_which_no_record_has_a_key(many: rs.Dataset) -> None:
    dataset = rs.open(many.shards[0].location)[::-1]  # the first one has it

    def resumed(key: str) -> rs.Loader:
        loader = rs.Loader(dataset, {"x": rs.Present(key)}, batch_size=50)
        next(iter(loader))
        again = rs.Loader(dataset, {"x": rs.Present(key)}, batch_size=50)
        again.load_state_dict(loader.state_dict())
        return again

    assert sum(batch["x"].sum() for batch in resumed("rare")) == 0
    with raises(OptionError, value="other"):
        list(resumed("other"))


@pytest.mark.usefixtures("_too_long")
def test_reading_the_beginning_twice_is_not_reading_everything(tmp_path: Path) -> None:
    records = [{"k": 1} | ({"rare": 1} if number == 70 else {}) for number in range(200)]
    loader = rs.Loader(written(tmp_path, records), {"x": rs.Present("rare")}, batch_size=50)
    begin, middle = loader.state_dict(), loader.state_after(2)
    for state in (begin, begin):
        loader.load_state_dict(state)
        next(iter(loader))
    loader.load_state_dict(middle)
    with pytest.warns(UserWarning, match="'rare'"):
        assert len(list(loader)) == 2


@pytest.mark.usefixtures("_too_long")
def test_loaders_of_keys_that_are_not_found_can_be_pickled(many: rs.Dataset) -> None:
    dataset = rs.open(many.shards[0].location)
    mix = rs.Mix([(dataset, 1), (dataset, 1)], rename=[{"label": "l"}, {"label": "l"}], length=10)
    for source in (dataset, mix):
        loader = rs.Loader(source, {"x": rs.Ragged("other")}, batch_size=200)
        again = pickle.loads(pickle.dumps(loader))
        if source is dataset:
            with raises(OptionError, value="other"):
                list(again)
        else:
            with pytest.warns(UserWarning, match="'other'"):
                list(again)


@pytest.mark.usefixtures("_too_long")
def test_a_share_of_an_epoch_in_which_no_record_has_a_key_is_a_warning(many: rs.Dataset) -> None:
    dataset = rs.open(many.shards[0].location)
    features = {"x": rs.Ragged("other")}
    loader = rs.Loader(dataset, features, batch_size=50, rank=1, world_size=2, epochs=2)
    with pytest.warns(UserWarning, match="'other'") as caught:
        assert len(list(loader)) == 4
    assert [warning.filename for warning in caught] == [__file__]
    with raises(OptionError, value="other"):  # all were read
        list(rs.Loader(dataset, features, batch_size=50))
    nothing = rs.Loader(dataset.take(1), features, batch_size=50, rank=3, world_size=4)
    assert sum(len(batch["x"]) for batch in nothing) == 0


@pytest.mark.usefixtures("_too_long")
def test_skipped_records_may_have_the_key(tmp_path: Path) -> None:
    records: list[Any] = [{"k": 1}] * 100
    dataset = written(tmp_path, [*records, b"plain words"])
    loader = rs.Loader(dataset, {"x": rs.Ragged("other")}, batch_size=50, skip_errors=1)
    with pytest.warns(UserWarning, match="'other'"):
        assert sum(len(batch["x"]) for batch in loader) == 100


@pytest.mark.parametrize("when", ["_too_long", None, "_long"])
def test_a_default_warns_once(
    many: rs.Dataset, when: str | None, request: pytest.FixtureRequest
) -> None:
    if when is not None:
        request.getfixturevalue(when)
    dataset = rs.open(many.shards[0].location)
    for key in ("labell", "other"):
        features = {"x": rs.Scalar(key, default=-1), "y": rs.Present(key)}
        with pytest.warns(UserWarning, match=key) as caught:
            batches = [*rs.Loader(dataset, features, batch_size=50, epochs=2)]
        assert {value for batch in batches for value in batch["x"].tolist()} == {-1}
        assert [warning.filename for warning in caught] == [__file__]
    batches = [*rs.Loader(dataset, {"x": rs.Scalar("rare", default=0)}, batch_size=50)]
    assert batches[-1]["x"].tolist()[-1] == 5


def test_a_key_that_one_dataset_of_a_mix_does_not_have(many: rs.Dataset) -> None:
    dataset = rs.open(many.shards[0].location)
    parts = [(dataset, 0.5), (dataset.take(80), 0.5)]
    renamed = rs.Mix(parts, rename=[{"rare": "new"}, {"rare": "new"}])
    rs.Loader(renamed, {"x": rs.Present("new")}, batch_size=4)
    for key in ("rare", "token"):
        with raises(OptionError, option="features", value=key):
            rs.Loader(renamed, {"x": rs.Ragged(key)}, batch_size=4)


def test_kinds_that_differ_are_named_with_a_record_of_each(tmp_path: Path) -> None:
    values: list[Any] = [[], 3, 4, 0.5, 5]
    dataset = written(tmp_path, [{"x": value} for value in values])
    for selected, places in ((dataset, "1.*3"), (dataset[::-1], "0.*1")):
        for feature in ("x", rs.Scalar("x", dtype="float32")):
            with raises(OptionError, option="features", match=f"record {places}.*one kind"):
                rs.Loader(selected, {"x": feature}, batch_size=2)
    renamed = rs.Mix([(dataset, 1)], rename=[{"x": "y"}])
    with raises(OptionError, value="y", match=r"record 1.*3"):
        rs.Loader(renamed, {"y": "y"}, batch_size=2)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    "features",
    [None, {"x": "key"}, {"x": rs.Scalar("key"), "y": rs.Padded("z")}, {"b": rs.Boxes()}],
)
def test_a_loader_over_nothing(tmp_path: Any, features: Any, threads: int) -> None:
    dataset = written(tmp_path, [])
    for options in (
        {},
        {"shuffle": True},
        {"epochs": None},
        {"last_batch": "pad"},
        {"last_batch": "drop"},
    ):
        loader = rs.Loader(dataset, features, batch_size=4, threads=threads, **options)
        assert list(loader) == []
        loader.close()


def test_lists_that_are_empty_in_all_records(tmp_path: Path) -> None:
    """Such as the boxes of images without objects: they are there, and have no kind."""
    boxes = rs.Boxes(labels="classes")
    example = {**dict.fromkeys(boxes.keys, ()), "classes": (), "many": ()}
    dataset = written(tmp_path, [example] * 3)
    assert dataset.view.preview_schema(3)[0].features["many"].kind == "none"
    (batch,) = rs.Loader(dataset, {"boxes": boxes, "many": rs.Ragged("many")}, batch_size=3)
    assert (batch["boxes"].shape, batch["boxes_labels"].shape) == ((3, 0, 4), (3, 0))
    assert batch["boxes_lengths"].tolist() == [0, 0, 0]
    assert batch["many"].row_splits.tolist() == [0, 0, 0, 0]
    with raises(rs.OptionError, option="features"):
        rs.Loader(dataset, {"many": rs.Ragged("man")}, batch_size=3)


OPTIONAL = [
    rs.Boxes(tuple(BOXES), None), rs.Present("o/ymin"), rs.Ragged("o/ymin"), rs.Padded("o/ymin"),
]  # fmt: skip


@pytest.mark.parametrize("feature", OPTIONAL)
def test_an_optional_key_that_one_dataset_of_a_mix_does_not_have(
    many: rs.Dataset, tmp_path: Path, feature: Any
) -> None:
    few, similar = (
        written(tmp_path, [record] * 4) for record in ({"label": 1}, {"o/ymins": [0.5]})
    )
    with pytest.warns(UserWarning, match="dataset 1 of the mix has 'o/ymin'") as caught:
        loader = rs.Loader(rs.Mix([(many, 1), (few, 1)], length=6), {"x": feature}, batch_size=6)
    assert [warning.filename for warning in caught] == [__file__]
    (batch,) = loader
    assert len(batch["x"]) == 6
    with raises(OptionError, value="o/ymin", match="dataset 1 of the mix.*'o/ymins'"):
        rs.Loader(rs.Mix([(many, 1), (similar, 1)]), {"x": feature}, batch_size=6)
    with raises(OptionError, value="o/ymin"):  # no dataset has it
        rs.Loader(rs.Mix([(few, 1), (few, 1)]), {"x": feature}, batch_size=6)


def test_warnings_are_of_the_line_that_calls(tmp_path: Path) -> None:
    dataset = written(tmp_path, [{"label": 1}] * 4)
    features = {"x": rs.Scalar("other", default=0)}
    with pytest.warns(UserWarning, match="'other'") as caught:
        rs.Examples(dataset, features)
    assert [warning.filename for warning in caught] == [__file__]
