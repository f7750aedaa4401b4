"""The generated stubs are those that the interface files make."""

from __future__ import annotations

import re
from pathlib import Path

import grpc_tools
import pytest
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

import airflow_provider_streams
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2

PACKAGE = Path(airflow_provider_streams.__file__).parent


@pytest.fixture(scope="module", params=[controller_pb2, commands_pb2], ids=["pravega", "pulsar"])
def stub(request):
    return request.param


@pytest.fixture(scope="module")
def regenerated(stub, tmp_path_factory):
    target = tmp_path_factory.mktemp("stub")
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    outputs = [f"--python_out={target}", f"--pyi_out={target}", f"--descriptor_set_out={target}/set"]
    assert protoc.main(["protoc", f"-I{PACKAGE.parent}", f"-I{well_known}", *outputs, stub.DESCRIPTOR.name]) == 0
    return target


def test_the_stub_has_the_messages_of_the_interface(stub, regenerated):
    described = descriptor_pb2.FileDescriptorSet.FromString((regenerated / "set").read_bytes()).file[0]
    shipped = descriptor_pb2.FileDescriptorProto()
    stub.DESCRIPTOR.CopyToProto(shipped)
    assert _without_json_names(described) == _without_json_names(shipped)


def _without_json_names(file: descriptor_pb2.FileDescriptorProto) -> str:
    return re.sub(r'\s*json_name: "[^"]*"', "", str(file))


@pytest.mark.parametrize("suffix", ["_pb2.py", "_pb2.pyi"])
def test_the_files_are_what_the_generator_writes(stub, regenerated, suffix):
    name = stub.DESCRIPTOR.name.replace(".proto", suffix)
    made, shipped = (regenerated / name).read_text(), (PACKAGE.parent / name).read_text()
    versions = re.compile(r"# Protobuf Python Version: .*|^    \d+,$", re.MULTILINE)
    assert versions.sub("", shipped) == versions.sub("", made)


def test_services_are_called_by_their_methods_only(stub):
    assert not stub.DESCRIPTOR.services_by_name
    assert "grpc" not in Path(stub.__file__).read_text()
