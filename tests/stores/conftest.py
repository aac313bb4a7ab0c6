"""What the tests of stores share."""

import pytest

from ..servers.s3 import QUICK

pytest.register_assert_rewrite("tests.stores.contract")

_PAUSE = "recordsmith.stores.network.object_store._FIRST_PAUSE_SECONDS"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine attempts wait for half a minute otherwise."""
    monkeypatch.setattr(_PAUSE, QUICK[_PAUSE])
