"""The package lerobot, also with a torchvision whose compiled operators do not load."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from unittest import mock

import pytest


@pytest.fixture(scope="session")
def package() -> ModuleType:
    torch = pytest.importorskip("torch")
    pytest.importorskip("lerobot")

    def register(*_: Any, **__: Any) -> Any:
        return lambda function: function

    with mock.patch.object(torch.library, "register_fake", register):
        import torchvision  # noqa: F401 - only its Python parts are used
    from lerobot.datasets import lerobot_dataset

    return lerobot_dataset
