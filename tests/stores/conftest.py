"""What the tests of stores share."""

import pytest

from recordsmith.stores.remote import object_store

pytest.register_assert_rewrite("tests.stores.contract")


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine attempts wait for half a minute otherwise."""
    monkeypatch.setattr(object_store, "_FIRST_PAUSE_SECONDS", 0.003)
