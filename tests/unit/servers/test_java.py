"""Peers of tests are compiled once, by javac or by Eclipse's compiler, and run."""

import subprocess
from dataclasses import replace

import pytest

from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers import JavaFailed, java
from stream_servers.java import compile_java, run_java

HELLO = """
public class Hello {
    public static void main(String[] arguments) {
        if (arguments.length == 0) { System.err.println("say whom"); System.exit(4); }
        System.out.println("hello " + arguments[0] + System.getenv().getOrDefault("MARK", "."));
    }
}
"""


@pytest.fixture
def hello(tmp_path, monkeypatch):
    monkeypatch.setattr("stream_servers.cache.cache_root", lambda: tmp_path / "cache")
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
    with pytest.raises(JavaFailed, match=r"(?s)compiling Hello.java ended with code \d+.*nonsense"):
        run_java(hello, [], [])


def test_a_program_that_does_not_end_is_killed(hello):
    hello.write_text("public class Hello { public static void main(String[] a) { for (;;) Thread.yield(); } }")
    with pytest.raises(subprocess.TimeoutExpired):
        run_java(hello, [], [], seconds=0.5)


def test_a_java_without_javac_has_eclipses_compiler(hello, monkeypatch, tmp_path):
    monkeypatch.setattr(java, "jars", lambda _bundle: ["/ecj.jar"])
    bare = replace(find_java(), home=tmp_path)
    program, classpath, jar, *_, release = java._compiler(bare)
    assert (program, classpath, jar, release) == (str(bare.program), "-cp", "/ecj.jar", "-17")
