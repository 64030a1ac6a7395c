"""An admission webhook on loopback that answers as a test wants, and its configuration."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Webhook:
    """A validating webhook for bindings in one namespace; failurePolicy Fail.

    Parameters
    ----------
    folder
        The control plane's: the webhook shows the API server's own certificate, which is made out
        to loopback.
    namespace
        Whose bindings it is asked about.

    Attributes
    ----------
    denial
        The Status with which it denies, None to allow.
    http_status
        What it answers instead of a review, if that is not 200: then the call has failed.
    asked
        How often it was asked.
    """

    def __init__(self, folder: Path, namespace: str) -> None:
        self._authority = (folder / "ca.crt").read_bytes()
        self._namespace = namespace
        self.denial: dict[str, Any] | None = None
        self.http_status = 200
        self.asked = 0
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = webhook.answer(review)
                self.send_response(webhook.http_status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
        self._server.socket = tls.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more: from here on whoever asks finds nobody."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, review: dict[str, Any]) -> bytes:
        """Return the review with its response."""
        self.asked += 1
        response: dict[str, Any] = {
            "uid": review["request"]["uid"],
            "allowed": self.denial is None,
        }
        if self.denial is not None:
            response["status"] = self.denial
        return json.dumps({**review, "request": None, "response": response}).encode()

    def configuration(self, *, path: str = "/") -> dict[str, Any]:
        """Return what installs it under the name ``bindings``."""
        port = self._server.server_address[1]
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "bindings"},
            "webhooks": [
                {
                    "name": "bindings.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 5,
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": self._namespace}
                    },
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["pods/binding"],
                        }
                    ],
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{port}{path}",
                        "caBundle": base64.b64encode(self._authority).decode(),
                    },
                }
            ],
        }
