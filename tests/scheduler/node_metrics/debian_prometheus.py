"""Debian's Prometheus on loopback, and a page of metrics for it to scrape."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import yaml

from tests.controlplane.server_process import ServerProcess
from tests.deploy.promtool import find_prometheus

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}}


class Exporter:
    """Serves ``text`` as metrics; end it with `stop`."""

    def __init__(self, text: str) -> None:
        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="exporter")
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class DebianPrometheus:
    """The server, which scrapes one address once a second; end it with `stop`."""

    def __init__(self, folder: Path, scraped: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as bound:
            address = f"127.0.0.1:{bound.getsockname()[1]}"
        jobs = [{"job_name": "nodes", "static_configs": [{"targets": [scraped]}]}]
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump({**_CONFIG, "scrape_configs": jobs}))
        self.url = f"http://{address}"
        self._process = ServerProcess(
            [
                find_prometheus(),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            folder / "prometheus.log",
        )

    def log_tail(self) -> str:
        return self._process.log_tail()

    def stop(self) -> None:
        self._process.kill()
