"""Names of files on a page: short, and no two alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recordsmith.examining.verification.verify_content import distinct_names

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


def test_names_are_below_the_common_folder() -> None:
    paths = ["/data/zoo/a/eval.tfrecord", "/data/zoo/b/eval.tfrecord", "/data/zoo/b/x.tfrecord"]
    assert list(map(distinct_names(paths).get, paths)) == [
        "a/eval.tfrecord",
        "b/eval.tfrecord",
        "b/x.tfrecord",
    ]


@given(st.sets(PATHS | PATHS.map("/{}".format) | PATHS.map("memory://{}".format)))
def test_names_are_unique(paths: set[str]) -> None:
    names = distinct_names(paths)
    assert names.keys() == paths
    assert len(set(names.values())) == len(paths)
    assert all(path.endswith(name) for path, name in names.items())
