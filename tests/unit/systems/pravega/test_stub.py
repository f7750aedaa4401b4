"""The generated stub is the one that the interface file makes."""

from __future__ import annotations

import re
from pathlib import Path

import grpc_tools
import pytest
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

import airflow_provider_streams
from airflow_provider_streams.systems.pravega import controller_pb2 as pb

PACKAGE = Path(airflow_provider_streams.__file__).parent
PROTO = "airflow_provider_streams/systems/pravega/controller.proto"


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory):
    target = tmp_path_factory.mktemp("stub")
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    outputs = [f"--python_out={target}", f"--pyi_out={target}", f"--descriptor_set_out={target}/set"]
    assert protoc.main(["protoc", f"-I{PACKAGE.parent}", f"-I{well_known}", *outputs, PROTO]) == 0
    return target


def test_the_stub_has_the_messages_of_the_interface(regenerated):
    described = descriptor_pb2.FileDescriptorSet.FromString((regenerated / "set").read_bytes()).file[0]
    shipped = descriptor_pb2.FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(shipped)
    assert _without_json_names(described) == _without_json_names(shipped)


def _without_json_names(file: descriptor_pb2.FileDescriptorProto) -> str:
    return re.sub(r'\s*json_name: "[^"]*"', "", str(file))


@pytest.mark.parametrize("suffix", ["_pb2.py", "_pb2.pyi"])
def test_the_files_are_what_the_generator_writes(regenerated, suffix):
    made = (regenerated / PROTO.replace(".proto", suffix)).read_text()
    shipped = (PACKAGE.parent / PROTO.replace(".proto", suffix)).read_text()
    versions = re.compile(r"# Protobuf Python Version: .*|^    \d+,$", re.MULTILINE)
    assert versions.sub("", shipped) == versions.sub("", made)


def test_the_service_is_called_by_its_methods_only():
    assert not pb.DESCRIPTOR.services_by_name
    assert "grpc" not in Path(pb.__file__).read_text()
