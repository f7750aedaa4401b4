"""`airflow streams init`: asks, writes one file, overwrites none, and says what to do next."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

FLAGS = ("fake", "numbers", "--sink", "iceberg:shop.orders", "--sink-option", "conn_id=iceberg_default")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(streams, capsys, *words: str) -> str:
    with pytest.raises(SystemExit):
        streams("init", *words)
    return capsys.readouterr().err


def test_it_asks_the_system_and_writes_a_file_that_compiles(streams, here: Path, capsys) -> None:
    streams("init", *FLAGS, "--schedule", "*/15 * * * *", "--start-date", "2026-11-20")
    said = capsys.readouterr().out
    text = (here / "numbers.py").read_text()
    compile(text, "numbers.py", "exec")
    assert 'window_timetable("*/15 * * * *")' in text
    assert "datetime(2026, 11, 20, tzinfo=UTC)" in text
    assert "numbers.py: DAG numbers lands each window (*/15 * * * * UTC)" in said
    assert "airflow connections add iceberg_default --conn-type iceberg" in said
    assert "airflow connections add fake_default" not in said, "it answered"


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (("0 * * * * Europe/Oslo",), '"0 * * * *", timezone="Europe/Oslo"'),
        (("0 * * * *", "--timezone", "Europe/Oslo"), '"0 * * * *", timezone="Europe/Oslo"'),
        (("@daily Europe/Oslo", "--timezone", "Europe/Oslo"), '"@daily", timezone="Europe/Oslo"'),
        (("* * * * * */30",), '"* * * * * */30"'),
        (("900",), '"15m"'),
        (("1d Europe/Oslo",), '"1d Europe/Oslo"'),
    ],
)
def test_a_schedule_is_written_as_for_doctor(streams, here: Path, words, written) -> None:
    streams("init", *FLAGS, "--schedule", *words)
    assert f"window_timetable({written})" in (here / "numbers.py").read_text()


def test_a_file_is_never_overwritten(streams, here: Path, capsys) -> None:
    (here / "numbers.py").write_text("mine")
    assert "init overwrites nothing: name another file with --output" in refusal(streams, capsys, *FLAGS)
    assert (here / "numbers.py").read_text() == "mine"


def test_a_link_to_nowhere_is_not_followed(streams, here: Path, capsys) -> None:
    (here / "numbers.py").symlink_to(here / "elsewhere.py")
    assert "init overwrites nothing" in refusal(streams, capsys, *FLAGS)
    assert not (here / "elsewhere.py").exists()


def test_a_missing_folder_is_named(streams, capsys) -> None:
    assert "nowhere/x.py cannot be written" in refusal(streams, capsys, *FLAGS, "--output", "nowhere/x.py")


def test_offline_asks_nothing_and_says_what_it_did_not_ask(streams, here: Path, capsys, monkeypatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_FAKE_DEFAULT")
    streams("init", *FLAGS, "--offline", "--output", "mine.py")
    said = capsys.readouterr().out
    assert "not asked (--offline): whether the source exists, its schema, its retention" in said
    assert "airflow connections add fake_default --conn-type fake" in said
    assert (here / "mine.py").exists()


@pytest.mark.parametrize("system", ["pulsar shop/orders/events", "pravega shop/orders"])
@pytest.mark.parametrize(
    "table", ["--path /lake", "--sink iceberg:shop.orders", "--sink delta:s3://lake/o --sink-option conn_id=aws"]
)
def test_every_system_and_table_works_offline(streams, here: Path, system: str, table: str, capsys) -> None:
    streams("init", *system.split(), *table.split(), "--offline", "--dag-id", "it")
    values: dict[str, object] = {}
    exec((here / "it.py").read_text(), values)  # noqa: S102
    said = capsys.readouterr().out
    assert f"airflow connections add {system.partition(' ')[0]}_default" in said
    assert ("airflow connections add aws --conn-type aws" in said) == ("aws" in table)


def test_credentials_are_variables_of_the_shell(streams, capsys) -> None:
    streams("init", "pulsar", "o", "--path", "/lake", "--offline")
    assert '--conn-password "$PULSAR_TOKEN"' in capsys.readouterr().out


def test_what_is_missing_is_named_where_no_one_can_be_asked(streams, capsys) -> None:
    assert "name the source" in refusal(streams, capsys, "--path", "/lake")
    assert "say where rows land with --sink" in refusal(streams, capsys, "fake", "numbers")


def test_a_person_at_a_terminal_is_asked(streams, here: Path, monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("fake numbers\niceberg:shop.orders\niceberg_default\n@daily\n"))
    streams("init")
    text = (here / "numbers.py").read_text()
    assert 'IcebergSink("shop.orders", conn_id="iceberg_default")' in text
    assert 'window_timetable("@daily")' in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--dag-id", "a b"), "--dag-id 'a b'"),
        (("--dag-id", "a\nb"), "--dag-id 'a\\nb'"),
        (("--start-date", "soon"), "--start-date is a day"),
        (("--schedule", "now and then"), "'now and then' is not a length of windows"),
        (("--schedule", "61 * * * *"), "no window schedule"),
        (("--schedule", "0 * * * * Europe/Osslo"), "did you mean 'Europe/Oslo'?"),
        (("--schedule", "@daily Europe/Oslo", "--timezone", "Asia/Tokyo"), "are not of the time zone 'Asia/Tokyo'"),
        (("--schedule", "1d", "--timezone", "Asia/Tokyo"), "are not of the time zone 'Asia/Tokyo'"),
        (("--max-skew", "5"), "--max-skew does not belong to basis"),
        (("--slack", "-5"), "--slack must not be negative"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_written(streams, here: Path, capsys, words, why) -> None:
    assert why in refusal(streams, capsys, *FLAGS, *words)
    assert list(here.glob("*.py")) == []


@pytest.fixture
def dag_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "dags"
    folder.mkdir()
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(folder))
    return folder


@pytest.mark.parametrize("how", [(), ("--offline",)])
def test_a_dag_name_of_another_file_is_a_warning_that_names_the_file(streams, dag_folder: Path, capsys, how) -> None:
    (dag_folder / "team").mkdir()
    (dag_folder / "team" / "old.py").write_text('from airflow.sdk import DAG\nDAG("numbers")\n')
    streams("init", *FLAGS, *how, "--output", str(dag_folder / "new.py"))
    assert f"WARNING {dag_folder / 'team' / 'old.py'} also has a DAG numbers" in capsys.readouterr().out


def test_a_new_dag_name_is_no_warning(streams, dag_folder: Path, capsys) -> None:
    (dag_folder / "old.py").write_text('from airflow.sdk import DAG\nDAG("numbers_of_old")\n')
    streams("init", *FLAGS, "--output", str(dag_folder / "new.py"))
    assert "also has a DAG" not in capsys.readouterr().out


def test_the_dag_that_records_cuts_has_a_name_too(streams, dag_folder: Path, capsys) -> None:
    (dag_folder / "old.py").write_text('DAG(dag_id="orders_cuts")')
    streams("init", "pravega", "shop/orders", "--path", "/lake", "--offline", "--basis", "append")
    said = capsys.readouterr().out
    assert "also has a DAG orders_cuts" in said
    assert "has a DAG orders," not in said


def test_a_connection_that_airflow_cannot_read_is_not_called_missing(streams, here: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ICEBERG_DEFAULT", "iceberg://id:canary/85@catalog")
    said = refusal(streams, capsys, *FLAGS)
    assert "cannot read the environment variable AIRFLOW_CONN_ICEBERG_DEFAULT" in said
    assert "canary" not in said
    assert list(here.glob("*.py")) == [], "init would not write it again"
