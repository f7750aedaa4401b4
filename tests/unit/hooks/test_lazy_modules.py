"""Hooks import clients when they are used: the names of their modules must lead somewhere."""

from __future__ import annotations

from importlib import import_module

import pytest

from airflow_provider_streams.hooks import pravega, pravega_connection, schema_registry
from airflow_provider_streams.model.lazy_module import LazyModule

LAZY = [
    (hook.__name__, name)
    for hook in (pravega, pravega_connection, schema_registry)
    for name, value in vars(hook).items()
    if isinstance(value, LazyModule)
]


@pytest.mark.parametrize(("hook", "name"), LAZY)
def test_a_lazy_module_can_be_imported(hook, name):
    lazy = vars(import_module(hook))[name]
    module = import_module(vars(lazy)["_name"])
    assert module.__name__.rpartition(".")[2] == name
