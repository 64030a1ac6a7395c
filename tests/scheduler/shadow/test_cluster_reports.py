from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
import structlog

from scheduler.cli import main
from scheduler.shadow import ShadowReport
from scheduler.shadow.command import PROFILES_PATH

REPORT = ShadowReport(
    scheduler_name="berth",
    live="file@1",
    shadow="schedulingprofile/packing@3",
    wanted=1000,
    compared=400,
    both_placed=342,
    changed_winners=300,
)


def profile(name: str, mode: str = "Shadow", report: ShadowReport | None = None):
    status = {} if report is None else {"shadow": msgspec.to_builtins(report)}
    return {"metadata": {"name": name}, "spec": {"mode": mode}, "status": status}


PROFILES = [
    profile("packing", report=REPORT),
    profile("new"),
    profile("live", mode="Active"),
]


class Served:
    """An API server that has SchedulingProfiles, or has never heard of them, and nothing else."""

    def __init__(self, profiles) -> None:
        answers = {}
        if profiles is not None:
            answers = {f"{PROFILES_PATH}/{each['metadata']['name']}": each for each in profiles}
            answers[PROFILES_PATH] = {"items": profiles}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                found = answers.get(self.path)
                body = json.dumps(found or {"kind": "Status", "reason": "NotFound"}).encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(autouse=True)
def no_log():
    """Leave the log of this process as it is: the command turns it to the standard error."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@pytest.fixture
def ask(tmp_path, capsys):
    """Return what asks a server that has these profiles: status, output and what went wrong."""

    def ask(*arguments: str, profiles=PROFILES):
        with Served(profiles) as url:
            path = tmp_path / "kubeconfig.json"
            path.write_text(json.dumps(kubeconfig(url)))
            status = main(["shadow", "report", *arguments, "--kubeconfig", str(path)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return ask


def kubeconfig(url: str):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def test_a_report_is_read_from_the_status(ask):
    status, text, _ = ask("packing")
    assert status == 0
    assert text.startswith("schedulingprofile/packing@3 beside file@1, pods of berth:\n")
    assert "300 (87.7 %) of 342 decisions" in text


def test_without_a_name_all_reports_are_told(ask):
    status, text, _ = ask("-o", "json")
    assert status == 0
    assert [msgspec.json.decode(line, type=ShadowReport) for line in text.splitlines()] == [REPORT]


@pytest.mark.parametrize(
    ("name", "profiles", "why"),
    [
        pytest.param(
            ["new"], PROFILES, "new has no report yet: no decision has been compared", id="new"
        ),
        pytest.param(["live"], PROFILES, "has no report: its mode is Active", id="not a shadow"),
        pytest.param(["gone"], PROFILES, "there is no SchedulingProfile gone", id="unknown"),
        pytest.param([".."], PROFILES, "cannot be read: '..' is not the name", id="no name"),
        pytest.param([], None, "their CustomResourceDefinition is missing", id="not installed"),
        pytest.param([], PROFILES[1:], "none of 2 SchedulingProfiles", id="no shadow at all"),
        pytest.param(
            [],
            [{"metadata": {"name": "a"}, "status": {"shadow": {"compared": "many"}}}],
            "cannot be read: ",
            id="a report of another make",
        ),
    ],
)
def test_where_there_is_no_report_the_reason_is_told(ask, name, profiles, why):
    status, _, said = ask(*name, profiles=profiles)
    assert status == 1
    assert why in said
