"""What Airflow discovers: a mistake here breaks every `airflow` command."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import airflow
import jsonschema
import pytest
from airflow.sdk import Asset

from airflow_provider_streams import ParquetSink, PulsarSource
from airflow_provider_streams.hooks.iceberg import IcebergHook
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from airflow_provider_streams.provider_info import APACHES_ICEBERG, get_provider_info
from airflow_provider_streams.systems.connection.catalog_properties import FORM_OPTIONS
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint as PravegaEndpoint
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint as PulsarEndpoint

INFO = get_provider_info()
FORMS = {form["connection-type"]: form for form in INFO["connection-types"]}
FIELDS = {
    "pulsar": {"token"},
    "pravega": {"scope", "username", "password"},
    "schema_registry": {"namespace", "username", "password"},
    "iceberg": set(),
}
"""Options that Airflow's own fields hold: password, schema, login."""
SYSTEMS = [
    ("pulsar", PulsarHook, PulsarEndpoint.options()),
    ("pravega", PravegaHook, PravegaEndpoint.options()),
    ("schema_registry", SchemaRegistryHook, RegistryEndpoint.options()),
    ("iceberg", IcebergHook, FORM_OPTIONS),
]


@pytest.mark.parametrize("schema", ["provider_info.schema.json", "provider.yaml.schema.json"])
def test_it_fulfils_airflows_schemas(schema):
    rules = json.loads((Path(airflow.__file__).parent / schema).read_text())
    document = dict(INFO)
    if schema == "provider.yaml.schema.json":
        # keys of a source tree, which an installed package does not have
        rules["required"] = [key for key in rules["required"] if key in document]
        for integration in document["integrations"]:
            assert integration["integration-name"]
    jsonschema.validate(document, rules)


@pytest.mark.parametrize("system", FORMS)
def test_conn_fields_fulfil_the_schema_that_alone_describes_them(system):
    rules = json.loads((Path(airflow.__file__).parent / "provider.yaml.schema.json").read_text())
    form = rules["properties"]["connection-types"]["items"]
    jsonschema.validate(FORMS[system], {**form, "definitions": rules.get("definitions", {})})


def test_its_name_is_the_installed_distribution():
    distribution = metadata.distribution(INFO["package-name"])
    assert distribution.metadata["Name"] == INFO["package-name"]
    (entry,) = distribution.entry_points.select(group="apache_airflow_provider")
    assert entry.value == "airflow_provider_streams.provider_info:get_provider_info"


def dotted_paths(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for child in value.values():
            yield from dotted_paths(child)
    elif isinstance(value, list):
        for child in value:
            yield from dotted_paths(child)
    elif isinstance(value, str) and value.startswith("airflow_provider_streams."):
        yield value


@pytest.mark.parametrize("path", sorted(set(dotted_paths(INFO))))
def test_every_dotted_path_can_be_imported(path):
    try:
        importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, attribute = path.rpartition(".")
        assert callable(getattr(importlib.import_module(module), attribute))


@pytest.mark.parametrize(("system", "hook", "_options"), SYSTEMS)
def test_the_hook_and_the_connection_type_agree(system, hook, _options):
    form = FORMS[system]
    assert form["hook-class-name"] == f"{hook.__module__}.{hook.__qualname__}"
    assert (form["connection-type"], form["hook-name"]) == (hook.conn_type, hook.hook_name)
    assert hook(**{hook.conn_name_attr: "other"}).conn_id == "other"


@pytest.mark.parametrize(("system", "_hook", "options"), SYSTEMS)
def test_the_form_has_a_field_for_every_option(system, _hook, options):
    form = FORMS[system]
    assert form["conn-fields"].keys() == {option.name for option in options} - FIELDS[system]
    own = {"host", "port", "login", "password", "schema"} - set(form["ui-field-behaviour"]["hidden-fields"])
    assert form["ui-field-behaviour"]["placeholders"].keys() <= {*form["conn-fields"], *own}


@pytest.mark.parametrize(("system", "_hook", "options"), SYSTEMS)
def test_the_forms_defaults_are_the_options(system, _hook, options):
    defaults = {option.name: option.default for option in options if option.default}
    fields = {name: field["schema"] for name, field in FORMS[system]["conn-fields"].items()}
    assert {name: str(rule["default"]).lower() for name, rule in fields.items() if "default" in rule} == defaults


@pytest.mark.parametrize(("_system", "_hook", "options"), SYSTEMS)
def test_airflow_masks_every_secret_option_by_its_name(_system, _hook, options):
    from airflow.sdk._shared.secrets_masker.secrets_masker import should_hide_value_for_key

    for option in options:
        assert not option.secret or should_hide_value_for_key(option.name)


def test_apaches_form_of_iceberg_stays_where_its_provider_is_installed(monkeypatch):
    find = metadata.distribution
    ours = find("airflow-provider-streams")
    monkeypatch.setattr(metadata, "distribution", lambda name: ours if name == APACHES_ICEBERG else find(name))
    assert [one["connection-type"] for one in get_provider_info()["connection-types"]] == [
        one for one in FORMS if one != "iceberg"
    ]


def test_modules_and_integrations_fit():
    known = {integration["integration-name"] for integration in INFO["integrations"]}
    for kind in ("hooks", "operators", "sensors", "triggers"):
        assert {entry["integration-name"] for entry in INFO[kind]} <= known


@pytest.mark.parametrize("mark", ["#", "?", "%", "%23", " ", "a=b&c"])
def test_names_that_mean_something_in_a_uri_keep_their_assets_apart(mark):
    named = [PulsarSource(f"shop/web/orders{name}", conn_id="p") for name in (f"{mark}1", f"{mark}2", "")]
    tables = [ParquetSink(f"/lake/orders{name}") for name in (f"{mark}1", f"{mark}2", "")]
    for uris in ([one.asset_uri for one in named], [one.asset_uri for one in tables]):
        assets = [Asset(uri=uri).uri for uri in uris]
        assert len(set(assets)) == 3
        assert assets == uris, "Airflow leaves them as they are"
        assert unquote(assets[0]).endswith(f"/orders{mark}1"), "nothing of the name is cut off"


def test_asset_uris_lose_credentials_and_need_a_name():
    assert Asset(uri="pulsar://me@cluster/shop/orders/events").uri == "pulsar://cluster/shop/orders/events"
    assert Asset(uri="pravega://c/scope/stream").uri == "pravega://c/scope/stream"
    with pytest.raises(ValueError, match="write this asset as"):
        Asset(uri="pulsar://cluster")


def test_discovery_imports_nothing_of_airflow_and_nothing_heavy():
    code = (
        "import sys, airflow_provider_streams.provider_info as info; info.get_provider_info(); "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'airflow', 'httpx', 'pyarrow', 'numpy'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_airflow_lists_the_provider_without_a_warning():
    ran = subprocess.run(
        [sys.executable, "-m", "airflow", "providers", "get", "airflow-provider-streams", "--full", "--output", "json"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore::FutureWarning,ignore::DeprecationWarning"},
    )
    assert "hooks.pulsar.PulsarHook" in ran.stdout
    assert "hooks.pravega.PravegaHook" in ran.stdout
    assert "warning" not in (ran.stdout + ran.stderr).lower()


@pytest.mark.parametrize("option", INFO["config"]["streams"]["options"])
def test_settings_have_defaults_that_airflow_knows(option):
    from airflow.configuration import conf
    from airflow.providers_manager import ProvidersManager

    ProvidersManager().initialize_providers_configuration()
    assert conf.get("streams", option) == INFO["config"]["streams"]["options"][option]["default"]
