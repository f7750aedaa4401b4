"""Files of Spark's settings: read and written as Java does it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.properties import read_properties, trimmed
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from stream_servers.java import run_java

# prints JSON of ASCII letters: each name and value as Java reads them
JAVA = r"""
import java.io.*; import java.util.*;
class Show {
  static String q(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (char c : s.toCharArray()) b.append(String.format("\\u%04x", (int) c));
    return b.append('"').toString();
  }
  public static void main(String[] a) throws Exception {
    Properties p = new Properties(); p.load(new InputStreamReader(new FileInputStream(a[0]), "UTF-8"));
    StringJoiner all = new StringJoiner(",", "{", "}");
    for (String name : p.stringPropertyNames()) all.add(q(name) + ":" + q(p.getProperty(name)));
    System.out.println(all);
} }
"""

WRITTEN = r"""# spark.remark 1
! spark.remark 2
spark.blank   a value with blanks
spark.equals=1=2
spark.colon: x:y
spark.both = : z
  spark.indented	tab
spark.lonely
spark.empty=
spark.trailing  v\u0020\u0009
spark.escaped\ name\=\:x value
spark.continued a,\
    b,\
  # no remark,\
	c
spark.odd back\\\
slash
spark.even back\\
spark.letters \u00e9\t\n\r\f\q\"
spark.twice 1
spark.twice 2
spark.accents grüße
other.setting is not Spark's
spark.windows C:\\dir
spark.last \
"""


def as_java_reads(file: Path, folder: Path) -> dict[str, str]:
    (folder / "Show.java").write_text(JAVA)
    found: dict[str, str] = json.loads(run_java(folder / "Show.java", [str(file)], []))
    return found


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
def test_a_file_is_read_as_java_reads_it(tmp_path: Path, newline: str) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_bytes(WRITTEN.replace("\n", newline).encode())
    java = {name: trimmed(value) for name, value in as_java_reads(file, tmp_path).items() if name.startswith("spark.")}
    lines = read_properties(file)
    assert {one.name: one.value for one in lines} == java
    assert java["spark.continued"] == "a,b,# no remark,c"
    where = {one.name: one.line for one in lines}
    assert (where["spark.blank"], where["spark.continued"], where["spark.odd"], where["spark.twice"]) == (3, 12, 16, 21)


def test_java_reads_what_was_written(tmp_path: Path) -> None:
    values = {
        "spark.a": "C:\\\\x =y: #z",
        "spark.c": "two\nlines\tand a tab",
        "spark.d": "grüße",
        "spark.e": "=",
        "spark.f": "",
        "spark.g": "#!",
    }
    file = tmp_path / "spark.properties"
    SparkSettings(values).write(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert as_java_reads(file, tmp_path) == values
    assert {one.name: one.value for one in read_properties(file)} == values


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreflightFailed, match=r"no-such\.conf cannot be read"):
        read_properties(tmp_path / "no-such.conf")
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.a 1\nspark.secret s3cret\\u12")
    with pytest.raises(PreflightFailed, match=r"spark-defaults\.conf, line 2") as caught:
        read_properties(file)
    assert "s3cret" not in str(caught.value)
