"""What a box publishes at the end of a night: a file of metrics, a ping, and which other boxes are silent."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from build.progress import Silent
from history.open import open_store
from history.series.task_states import TaskCheck, TaskOutcome, TrackedTask, record_checks
from history.timestamps import now
from runners.cli import main
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from runners.nightly import status as status_module
from runners.nightly.heartbeat import MISSED_HOURS, Heart, State, status
from tests.runners.small_plan import small_plan

pytestmark = pytest.mark.deep("whole nights")

NAME = "metrics/tidemark.prom"


class Switch:
    """A dead man's switch: the paths that were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.code = 200


@pytest.fixture
def switch() -> Iterator[tuple[Switch, str]]:
    found = Switch()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            self.send_response(found.code)
            self.end_headers()

        def log_message(self, *words: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found, f"http://127.0.0.1:{server.server_address[1]}/secret"
    server.shutdown()
    server.server_close()


@pytest.fixture
def plan(tmp_path: Path, switch: tuple[Switch, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(night_module, "run_session", lambda *_: SessionOutcome(uid="x"))
    monkeypatch.setattr(status_module, "PING_SECONDS", 0.1)
    path = tmp_path / "plan.toml"
    text = small_plan(["insert"], f'[metrics]\nfile = "{NAME}"')
    assert text.count('hostname = "*"\n') == 1
    path.write_text(text.replace('hostname = "*"\n', f'hostname = "*"\nping = "{switch[1]}"\n'))
    return path


def test_a_night_and_a_report_write_the_metrics_and_ping(
    plan: Path, tmp_path: Path, switch: tuple[Switch, str]
) -> None:
    path = tmp_path / "home" / NAME
    assert main(["nightly", "--measure", "--plan", str(plan)]) == 0
    assert (path.exists(), switch[0].asked) == (False, [])  # another process reports
    for words in (["nightly", "--report"], ["nightly"]):
        path.unlink(missing_ok=True)
        assert main([*words, "--plan", str(plan)]) == 0
        samples = [
            sample for family in text_string_to_metric_families(path.read_text()) for sample in family.samples
        ]
        assert [
            sample.labels["state"] for sample in samples if sample.name == "tidemark_state" and sample.value
        ] == ["ended"]
        assert path.stat().st_mode & 0o777 == 0o644  # the collector is another user
        assert [other.name for other in path.parent.iterdir()] == [path.name]
    assert switch[0].asked == ["/secret", "/secret"]


def test_a_night_that_needs_somebody_pings_a_failure(
    plan: Path, tmp_path: Path, switch: tuple[Switch, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> SessionOutcome:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(night_module, "run_session", full)
    assert main(["nightly", "--measure", "--plan", str(plan)]) == 2
    main(["nightly", "--report", "--plan", str(plan)])
    assert switch[0].asked == ["/secret/fail"]
    (tmp_path / "home/history.db").write_text("no history")
    assert main(["nightly", "--report", "--plan", str(plan)]) == 2
    assert switch[0].asked == ["/secret/fail", "/secret/fail"]


def test_what_cannot_be_published_is_said_and_ends_nothing(
    plan: Path, tmp_path: Path, switch: tuple[Switch, str], capsys: pytest.CaptureFixture[str]
) -> None:
    switch[0].code = 503
    (tmp_path / "home").mkdir()
    (tmp_path / "home/metrics").write_text("a file")
    assert main(["nightly", "--plan", str(plan)]) == 0
    said = capsys.readouterr().err
    assert "the address of ping in the plan was not reached: it answers 503" in said
    assert "the metrics could not be written: " in said
    assert "/secret" not in said
    assert len(switch[0].asked) == 3


def test_who_reports_lists_the_boxes_without_a_sign(
    plan: Path, tmp_path: Path, switch: tuple[Switch, str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = plan.read_text()
    plan.write_text(
        text + '[boxes.silent]\nlabel = "s"\n[boxes.quick]\nlabel = "q"\n[boxes.new]\nlabel = "n"\n'
    )
    assert main(["nightly", "--plan", str(plan)]) == 0
    late, soon = timedelta(hours=MISSED_HOURS + 1), timedelta(hours=MISSED_HOURS - 1)
    with open_store(tmp_path / "home/history.db") as store, store.database.writing() as connection:
        for box, ago in (("silent", late), ("quick", soon)):
            task = TrackedTask(box, "write-heavy", "smoke relaxed", "postgres@18.6")
            record_checks(
                connection, [TaskCheck(task, box, TaskOutcome.MEASURED, "", None, None)], now() - ago
            )
    capsys.readouterr()
    assert main(["nightly", "--report", "--plan", str(plan)]) == 2
    said = capsys.readouterr().out
    assert "box silent: no sign of a night in the history since " in said
    assert "box quick" not in said
    assert "box new" not in said
    assert switch[0].asked[-1] == "/secret/fail"


def test_the_unit_is_told_that_a_night_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        heart = Heart(tmp_path / "beat.json", "db1", Silent())
        assert systemd.recv(100) == b"WATCHDOG=1"
        with heart.task("compiling"):
            assert systemd.recv(100) == b"WATCHDOG=1"
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    heart.end("done")  # who no longer listens ends no night
    assert status(tmp_path / "beat.json", now()).state is State.ENDED
