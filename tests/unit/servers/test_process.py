"""Processes end as they should, whatever happens to them or to their starter."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from stream_servers import Server, ServerFailed, wait_until
from stream_servers.process import LOOPBACK, free_ports

ACCEPTING = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
SERVING = "while True: c, _ = s.accept(); c.sendall(b'hi'); c.close()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
WITH_CHILD = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
"""


class Greeter(Server):
    """Answers "hi" on its port."""

    title = "Greeter"
    ports = ("greeting",)
    ready_seconds = 20.0

    def __init__(self, program: str = ACCEPTING + SERVING) -> None:
        super().__init__()
        self.program = program
        self.prepared = 0

    def prepare(self):
        self.prepared += 1

    def command(self):
        return [sys.executable, "-c", self.program, str(self.port["greeting"])]

    def is_ready(self):
        return self.greeting() == b"hi"

    def greeting(self, seconds=60.0):
        with socket.create_connection((LOOPBACK, self.port["greeting"]), timeout=seconds) as connection:
            return connection.recv(2)


def gone(pid: int) -> bool:
    """No such process, or only its entry in the process table is left."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_started_server_answers_and_a_stopped_one_leaves_nothing():
    with Greeter() as server:
        assert server.greeting() == b"hi"
        pid, home = server.pid, server.home
    assert gone(pid)
    assert not home.exists()


def test_ports_are_different_and_free():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, port))


def test_kill_and_restart_keep_ports_and_data():
    with Greeter() as server:
        port, pid = server.port["greeting"], server.pid
        (server.home / "data").write_text("kept")
        server.kill()
        assert not server.running
        assert gone(pid)
        server.start()
        assert server.pid != pid
        server.restart()
        assert server.greeting() == b"hi"
        assert server.port["greeting"] == port
        assert (server.home / "data").read_text() == "kept"
        assert server.prepared == 1


def test_starting_a_running_server_changes_nothing():
    with Greeter() as server:
        pid = server.pid
        assert server.start().pid == pid


def test_a_paused_server_accepts_and_says_nothing_until_it_is_resumed():
    with Greeter() as server:
        server.pause()
        with pytest.raises(TimeoutError):
            server.greeting(seconds=0.3)
        server.resume()
        assert server.greeting() == b"hi"


def test_a_server_that_ends_early_is_an_error_with_the_end_of_its_log():
    server = Greeter("print('line one'); print('the reason'); raise SystemExit(3)")
    with pytest.raises(ServerFailed, match=r"(?s)Greeter ended with code 3.*the reason"):
        server.__enter__()
    assert not server.running


def test_a_server_that_never_answers_is_an_error_and_does_not_stay():
    server = Greeter("import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)")
    server.ready_seconds = 1.0
    with pytest.raises(ServerFailed, match="was not ready within 1 s") as failed:
        server.__enter__()
    pid = int(str(failed.value).rsplit("pid ", 1)[1])
    assert gone(pid)


def test_a_server_deaf_to_sigterm_is_killed_after_its_grace():
    server = Greeter(DEAF + ACCEPTING + SERVING)
    server.grace_seconds = 0.2
    with server:
        pid = server.pid
    assert gone(pid)


def test_what_a_server_started_ends_with_it():
    with Greeter(ACCEPTING + WITH_CHILD + SERVING) as server:
        child = int(server.log_text().split()[1])
        assert not gone(child)
    wait_until(lambda: gone(child), "the server's child to end")


@pytest.mark.slow_except("9")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_server_dies_with_its_starter_however_that_ends(tmp_path, number):
    program = textwrap.dedent(
        f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_process import Greeter
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a background of nohup ignores it
        server = Greeter().__enter__()
        # A child that lives on must not keep the server alive.
        if os.fork() == 0:
            os.setsid()
            signal_file = open({str(tmp_path / "child")!r}, "w")
            print(os.getpid(), file=signal_file, flush=True)
            signal.pause()
        print(server.pid, server.port["greeting"], server.home, flush=True)
        sys.stdin.read()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        pid, port, home = starter.stdout.readline().split()
        wait_until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), "the child")
        try:
            with socket.create_connection((LOOPBACK, int(port))) as connection:
                assert connection.recv(2) == b"hi"
            starter.send_signal(number)
            starter.wait(600)
            wait_until(lambda: gone(int(pid)), "the server to end", 120)
            wait_until(lambda: not Path(home).exists(), "its directory to go", 120)
        finally:
            os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def test_waiting_gives_the_answer_or_names_what_did_not_come():
    answers = iter([None, 0, "here"])
    assert wait_until(lambda: next(answers), "it", every_seconds=0.0) == "here"
    with pytest.raises(TimeoutError, match="the moon: not within 0 s"):
        wait_until(lambda: False, "the moon", seconds=0.0)
