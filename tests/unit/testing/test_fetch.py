"""What servers need is fetched once, whole, by Maven or by Ivy."""

import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from airflow_provider_streams.testing.servers import FetchFailed, fetch, pravega, pulsar
from airflow_provider_streams.testing.servers.cache import cache_root, cached
from airflow_provider_streams.testing.servers.fetch import Artifact, Bundle, ivy_command, ivy_module, maven_pom

BUNDLE = Bundle(
    "Thing 1",
    (Artifact("org.thing", "thing", "1"), Artifact("org.other", "other", "2", "tar.gz", "bin")),
    (("org.bad", "*"), ("org.worse", "worst")),
)
POM = "{http://maven.apache.org/POM/4.0.0}"


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "airflow-provider-streams"


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """An empty directory that is the whole PATH, but for Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    script(folder / "java", "echo 'openjdk version \"17.0.1\"' >&2")
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")
    path.chmod(0o755)


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own text


def test_the_cache_is_where_xdg_says(fresh_cache):
    assert cache_root() == fresh_cache


def test_the_pom_names_every_artifact_without_the_excluded_ones():
    dependencies = parsed(maven_pom(BUNDLE)).findall(f"{POM}dependencies/{POM}dependency")
    thing, other = ({child.tag.removeprefix(POM): child.text for child in d} for d in dependencies)
    assert (thing["groupId"], thing["artifactId"], thing["version"], thing["type"]) == (
        "org.thing",
        "thing",
        "1",
        "jar",
    )
    assert "classifier" not in thing
    assert (other["type"], other["classifier"]) == ("tar.gz", "bin")
    for dependency in dependencies:
        excluded = [tuple(child.text for child in e) for e in dependency.iter(f"{POM}exclusion")]
        assert excluded == [("org.bad", "*"), ("org.worse", "worst")]


def test_the_ivy_module_names_every_artifact_and_exclusion():
    module = parsed(ivy_module(BUNDLE))
    thing, other = module.findall("dependencies/dependency")
    assert (thing.attrib["org"], thing.attrib["name"], thing.attrib["rev"]) == ("org.thing", "thing", "1")
    assert {thing.attrib["transitive"], other.attrib["transitive"]} == {"true"}
    # With `runtime` alone Ivy leaves out the named jars themselves.
    assert thing.attrib["conf"] == "default->master,runtime"
    artifact = other.find("artifact").attrib
    assert (artifact["type"], artifact["ext"]) == ("tar.gz", "tar.gz")
    assert artifact["{http://ant.apache.org/ivy/maven}classifier"] == "bin"
    excluded = [(e.attrib["org"], e.attrib["module"]) for e in module.findall("dependencies/exclude")]
    assert excluded == [("org.bad", "*"), ("org.worse", "worst")]


def test_an_artifact_without_dependencies_is_not_resolved_further():
    assert parsed(ivy_module(pulsar.BUNDLE)).find("dependencies/dependency").attrib["transitive"] == "false"
    assert not parsed(ivy_module(pulsar.BUNDLE)).findall("dependencies/exclude")


def test_ivy_takes_bundles_as_jars_and_the_types_we_name(tools, tmp_path):
    command = ivy_command(Path("ivy.jar"), BUNDLE, tmp_path, tmp_path / "into", tmp_path / "downloads")
    assert command[command.index("-types") + 1 :] == ["bundle", "jar", "tar.gz"]
    assert command[0] == str(tools / "java")


def test_the_key_tells_versions_and_exclusions_apart():
    other = Bundle(pravega.BUNDLE.title, pravega.BUNDLE.artifacts, pravega.BUNDLE.excludes[1:])
    assert other.key != pravega.BUNDLE.key
    assert pravega.BUNDLE.key.startswith("pravega-standalone-0.13.0-")


def test_maven_is_used_where_it_is_and_archives_are_unpacked(tools, tmp_path, capsys):
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / "run").write_text("#!/bin/sh")
    (tmp_path / "content" / "run").chmod(0o755)
    with tarfile.open(tmp_path / "thing.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "content", "thing-1")
    script(
        tools / "mvn", f'for a; do case $a in -DoutputDirectory=*) cp {tmp_path}/thing.tar.gz "${{a#*=}}";; esac; done'
    )
    place = fetch.fetch(BUNDLE)
    assert [path.name for path in place.iterdir()] == ["thing-1"]
    assert (place / "thing-1" / "run").stat().st_mode & 0o111
    assert "Thing 1: fetching with Maven" in capsys.readouterr().err

    (tools / "mvn").unlink()
    assert fetch.fetch(BUNDLE) == place, "what is in the cache needs no tool"
    assert capsys.readouterr().err == ""


def test_a_failed_fetch_tells_the_tools_last_words_and_leaves_nothing(tools, fresh_cache):
    script(tools / "mvn", "echo no route to host; exit 7")
    with pytest.raises(FetchFailed, match=r"(?s)Thing 1.*Maven ended with code 7.*no route to host"):
        fetch.fetch(BUNDLE)
    assert [path.name for path in fresh_cache.iterdir()] == [f"{BUNDLE.key}.lock"]


def test_a_tool_that_leaves_no_files_is_a_failure(tools):
    script(tools / "mvn", "exit 0")
    with pytest.raises(FetchFailed, match="left no files"):
        fetch.fetch(BUNDLE)


def test_without_maven_pysparks_ivy_is_used(tools):
    pytest.importorskip("pyspark")
    version = "echo 'openjdk version \"17.0.1\"' >&2"
    retrieve = '-retrieve) touch "$(dirname "$2")/thing.jar"'
    script(tools / "java", f"{version}\nwhile [ $# -gt 0 ]; do case $1 in {retrieve};; esac; shift; done")
    assert [path.name for path in fetch.fetch(BUNDLE).iterdir()] == ["thing.jar"]


def test_without_maven_and_ivy_the_message_says_what_to_install(tools, monkeypatch):
    monkeypatch.setattr(fetch, "find_spec", lambda _name: None)
    with pytest.raises(FetchFailed, match=r"apt-get install maven, or pip install pyspark"):
        fetch.fetch(BUNDLE)


def test_a_build_that_fails_leaves_nothing_under_the_key(fresh_cache):
    def build(into):
        (into / "half").touch()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cached("thing", build)
    assert [path.name for path in fresh_cache.iterdir()] == ["thing.lock"]


def test_processes_that_need_the_same_build_it_once(tmp_path):
    built = tmp_path / "built"
    program = textwrap.dedent(
        f"""
        from airflow_provider_streams.testing.servers.cache import cached
        def build(into):
            with open({str(built)!r}, "a") as file:
                file.write("once\\n")
            (into / "file").write_text("whole")
        print((cached("thing", build) / "file").read_text())
        """
    )
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=120)[0] for process in started] == ["whole\n"] * 3
    assert built.read_text() == "once\n"
