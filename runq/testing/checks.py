"""Checks that every kind of plugin shares."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest


def require(condition: object, message: str) -> None:
    """Fail the test with a sentence for the plugin's author; unlike `assert` it also holds under ``python -O``."""
    if not condition:
        pytest.fail(message, pytrace=False)


def require_json(value: Any, what: str) -> str:
    """The value as JSON text; fails the test when it is no JSON data."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        pytest.fail(f"{what} must be JSON data, because it goes into the journal: {error}", pytrace=False)


class OptionsConformance:
    """What every plugin's class must be."""

    def make(self) -> Any:
        """The plugin under test, with the options you want tested. Your class gives this."""
        raise NotImplementedError

    def test_its_options_are_described_attrs_fields(self) -> None:
        """A queue file's options are the attrs fields; `runq plugins` and the docs show their descriptions."""
        cls = type(self.make())
        require(attrs.has(cls), f"{cls.__name__} must be an attrs class")
        for field in attrs.fields(cls):
            if field.init:
                require(
                    field.metadata.get("description"),
                    f'{cls.__name__}.{field.name} needs metadata={{"description": "..."}}',
                )
                require(field.type is not None, f"{cls.__name__}.{field.name} needs a type")

    def test_making_it_twice_gives_equal_plugins(self) -> None:
        """The constructor has no side effects: a plan makes plugins only to look at them."""
        require(self.make() == self.make(), "two plugins with the same options must be equal")
