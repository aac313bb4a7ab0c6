"""The contract's asserts say what they compared."""

import pytest

pytest.register_assert_rewrite("tests.sources.source_contract", "tests.stores.contract")
