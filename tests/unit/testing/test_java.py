"""The right Java is found, or the message says which to install; peers are compiled once."""

import subprocess

import pytest

from airflow_provider_streams.testing.servers import JavaFailed, JavaMissing, java
from airflow_provider_streams.testing.servers.java import compile_java, find_java, java_version, run_java

HELLO = """
public class Hello {
    public static void main(String[] arguments) {
        if (arguments.length == 0) { System.err.println("say whom"); System.exit(4); }
        System.out.println("hello " + arguments[0] + System.getenv().getOrDefault("MARK", "."));
    }
}
"""


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("javac 17.0.15", 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", 0),
    ],
)
def test_versions_are_read_in_all_their_spellings(told, version):
    assert java_version(told) == version


def test_without_java_the_message_says_what_to_install_and_how(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        JavaMissing, match=r"Java 17 or newer is needed.*no java in any directory of PATH.*apt-get install"
    ):
        find_java()


def test_an_old_java_is_named_with_its_version(tmp_path, monkeypatch):
    (tmp_path / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaMissing, match=r"java is Java 11"):
        find_java()


def test_java_home_wins_over_path(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\"' >&2\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == str(tmp_path / "bin" / "java")


@pytest.fixture
def hello(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "Hello.java"
    source.write_text(HELLO)
    return source


def test_a_program_is_compiled_once_and_again_when_it_changed(hello, monkeypatch):
    assert run_java(hello, ["you"], [], {"MARK": "!"}) == "hello you!\n"
    classes = compile_java(hello, [])
    with monkeypatch.context() as patched:
        patched.setattr(java.subprocess, "run", lambda *_a, **_k: pytest.fail("compiled again"))
        assert compile_java(hello, []) == classes
    hello.write_text(HELLO.replace("hello", "goodbye"))
    assert run_java(hello, ["you"], []) == "goodbye you.\n"


def test_a_program_that_fails_tells_its_code_and_output(hello):
    with pytest.raises(JavaFailed, match=r"(?s)java Hello ended with code 4.*say whom"):
        run_java(hello, [], [])
    hello.write_text("public class Hello { nonsense }")
    with pytest.raises(JavaFailed, match=r"(?s)javac Hello.java ended with code 1.*nonsense"):
        run_java(hello, [], [])


def test_a_program_that_does_not_end_is_killed(hello):
    hello.write_text("public class Hello { public static void main(String[] a) { for (;;) Thread.yield(); } }")
    with pytest.raises(subprocess.TimeoutExpired):
        run_java(hello, [], [], seconds=0.5)
