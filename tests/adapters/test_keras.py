from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

PROGRAM = """
    import json
    import os
    import sys

    backend, path = sys.argv[1:]
    os.environ["KERAS_BACKEND"] = backend

    import keras
    import numpy as np

    import recordsmith as rs
    from recordsmith.keras import batches

    assert keras.backend.backend() == backend
    assert backend == "tensorflow" or "tensorflow" not in sys.modules
    trained = []


    class Model(keras.Model):  # not built before it sees a batch, and it notes what it is given
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, kernel_initializer="zeros")

        def call(self, x):
            return self.dense(x["features"] if isinstance(x, dict) else x)

        def train_step(self, data):
            trained.append(np.asarray(data[1]).ravel().astype(int).tolist())
            return super().train_step(data)


    def model():
        trained.clear()
        made = Model()
        eagerly = backend == "tensorflow"
        made.compile(keras.optimizers.SGD(1e-4), "mse", metrics=["mae"], run_eagerly=eagerly)
        return made


    def loader(**options):
        options = {"batch_size": 4, "shuffle": True, "threads": 1} | options
        features = {"features": "features", "number": "number", "weight": "weight"}
        return rs.Loader(rs.open(path), features, **options)


    def fit(loader, **options):
        model().fit(batches(loader, "features", "number"), verbose=0, **options)
        return list(trained)


    def numbers(loader, epochs):
        return [batch["number"].tolist() for _ in range(epochs) for batch in loader]


    # every epoch whole and in its order, whatever Keras looks at before, and however it shuffles
    wanted = numbers(loader(), 3)
    train = loader()
    assert fit(train, epochs=3) == fit(loader(), epochs=3, shuffle=False) == wanted
    assert train.state_dict() == train.state_after(len(wanted))
    two = loader(batch_size=10)
    assert fit(two, epochs=2) == numbers(loader(batch_size=10), 2)

    # validation is all of it, each time; predictions are in order
    validation = batches(loader(shuffle=False), "features", "number")
    fitted = model()
    history = fitted.fit(
        batches(loader(), "features", "number"), validation_data=validation, epochs=2, verbose=0
    ).history
    once, again = (fitted.evaluate(validation, verbose=0) for _ in range(2))
    assert once == again
    assert abs(float(history["val_loss"][-1]) - once[0]) < 1e-3 * once[0]
    predicted = fitted.predict(batches(loader(shuffle=False), "features"), verbose=0).ravel()
    assert len(predicted) == 20
    errors = np.square(predicted - np.arange(20))
    assert abs(errors.mean() - once[0]) < 1e-3 * once[0]

    # dicts of inputs, and weights: those of 0 train nothing
    weighed = model()
    data = batches(loader(), ["features"], "number", "weight")
    weighed.fit(data, verbose=0, epochs=2)
    assert all(not np.asarray(weights).any() for weights in weighed.get_weights())

    # going on in the middle of an epoch, exactly
    for done in (1, 7, 13):
        resumed = loader()
        resumed.load_state_dict(json.loads(json.dumps(train_state := loader().state_after(done))))
        rest = fit(resumed, initial_epoch=done // 5, epochs=done // 5 + 1)
        assert rest == wanted[done : done // 5 * 5 + 5], done
        assert fit(resumed, epochs=1) == numbers(loader(), done // 5 + 2)[done // 5 * 5 + 5 :]
    resumed = loader()
    resumed.load_state_dict(train_state)
    try:
        fit(resumed, epochs=2)
    except Exception as error:
        assert "fit the rest of it alone" in str(error), error
    else:
        raise AssertionError("a second epoch after the rest of one")

    # epochs of one's own length
    def pairs(loader):
        for batch in loader:
            yield batch["features"], batch["number"]

    model().fit(pairs(loader(epochs=None)), steps_per_epoch=3, epochs=4, shuffle=False, verbose=0)
    assert trained == wanted[:12]

    # a damaged record says where
    data = bytearray(open(path, "rb").read())
    data[len(data) // 20 * 12 + 20] ^= 1
    open("damaged.tfrecord", "wb").write(data)
    damaged = rs.Loader(
        rs.open("damaged.tfrecord"), {"features": "features", "number": "number"}, batch_size=4
    )
    try:
        model().fit(batches(damaged, "features", "number"), verbose=0)
    except Exception as error:
        assert "damaged.tfrecord, record 12, byte" in str(error), error
    else:
        raise AssertionError("a damaged record")

    # what is refused, in words
    dataset = rs.open(path)
    names = {name: name for name in ("number", "features", "some", "text")}
    every = rs.Loader(dataset, {**names, "text": rs.Text("text")}, batch_size=4)
    endless = rs.Loader(dataset, names, batch_size=4, epochs=None)
    for arguments in (
        (every, "feature"), (every, "number", "some"), (every, "text"),
        (every, "number", None, "number"), (endless, "number"),
        (dataset, "number"), (every, []), (every, 3),
    ):
        try:
            batches(*arguments)
        except rs.OptionError as error:
            print(error)
    late = rs.Loader(dataset, {"number": "number"}, batch_size=4)
    data = batches(late, "number")
    late.load_state_dict(late.state_after(2))
    few = rs.Loader(dataset, {"number": "number"}, batch_size=4, filter=lambda one: False)
    for stream in (data, batches(few, "number")):
        try:
            stream[0]
        except rs.OptionError as error:
            print(error)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "numbers.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(20):
            writer.write_example(
                {
                    "number": number,
                    "features": [float(number), 1.0, 2.0],
                    "weight": 0.0,
                    "some": list(range(number % 3)),
                    "text": "x",
                }
            )
    return path


REFUSED = (
    "no entry 'feature'; did you mean 'features'?",
    "'some' is ragged; expected numbers",
    "'text' is text; expected numbers",
    "sample_weight needs y",
    "is endless",
    "must be a recordsmith.Loader",
    "[] is not an entry",
    "3 is not an entry",
    "3 batches, but Keras expects 5. Call batches(loader) after load_state_dict",
    "all records of a batch were filtered",
)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "torch"])
def test_fit_evaluate_and_predict(run_program: Any, path: Path, backend: str) -> None:
    for needed in ("keras", backend):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    told = run_program(PROGRAM, backend, path).splitlines()
    for line, words in zip(told, REFUSED, strict=True):
        assert words in line


@pytest.mark.parametrize("broken_after", [0, 1, 3])
def test_an_iteration_is_taken_back(path: Path, broken_after: int) -> None:
    def loader() -> rs.Loader:
        return rs.Loader(rs.open(path), {"number": "number"}, batch_size=4, shuffle=True)

    def numbers(loader: rs.Loader) -> list[list[int]]:
        return [batch["number"].tolist() for batch in loader]

    whole = loader()
    wanted = [numbers(whole) for _ in range(3)]
    looked_at = loader()
    for epoch, numbers_wanted in enumerate(wanted):
        if epoch == 1:  # the rest of an epoch is given again, too
            looked_at.load_state_dict(json.loads(json.dumps(loader().state_after(7))))
        left = numbers_wanted[2:] if epoch == 1 else numbers_wanted
        look = iter(looked_at)
        assert [next(look)["number"].tolist() for _ in range(broken_after)] == left[:broken_after]
        look.undo()
        assert list(look) == []
        assert looked_at.session.is_resuming == (epoch == 1)
        assert numbers(looked_at) == left
    one, other = iter(looked_at), iter(looked_at)
    assert [next(one)["number"].tolist(), next(other)["number"].tolist()] != [[], []]
    after = looked_at.state_dict()
    one.undo()  # another has begun: it is only closed
    assert looked_at.state_dict() == after


@pytest.mark.slow
def test_the_page(run_page: Any) -> None:
    pytest.importorskip("tensorflow", exc_type=ImportError)
    run_page("keras.md")
