"""An alert reaches a real service, holds no secret, and when it cannot be sent changes nothing."""

from __future__ import annotations

import http.server
import json
import logging
import threading
from collections.abc import Iterator

import pytest

from backfill_assets.controls.alerts import Alert, must_be_usable, sender
from backfill_assets.errors import DeclarationError

ALERT = Alert(
    "Backfill b1 failed at mart.t 2026-05-12", ("12 rows of 13", "To resume: dagster job launch")
)


@pytest.fixture
def service() -> Iterator[tuple[str, list[dict]]]:
    """A web hook that keeps what it is sent."""
    got: list[dict] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if self.path != "/broken" else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"json://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_alert_arrives_with_its_title_and_every_line(service: tuple[str, list[dict]]) -> None:
    url, got = service
    sender([url])(ALERT)
    assert [(one["title"], one["message"]) for one in got] == [(ALERT.title, ALERT.text)]


def test_an_alert_that_cannot_be_sent_is_logged_without_its_url_and_nothing_else_happens(
    service: tuple[str, list[dict]], caplog: pytest.LogCaptureFixture
) -> None:
    url, _ = service
    with caplog.at_level(logging.ERROR):
        sender([f"{url}/broken?token=s3cret", "json://ana:s3cret@127.0.0.1:9/x"])(ALERT)
    assert "was not sent" in caplog.text
    assert "s3cret" not in caplog.text


def test_without_a_service_the_log_says_that_nobody_was_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        sender([])(ALERT)
    assert "nobody was told" in caplog.text


def test_a_url_that_no_service_answers_to_is_refused_without_being_shown() -> None:
    must_be_usable(["json://127.0.0.1/x", "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"])
    with pytest.raises(DeclarationError, match=r"its URL number 2 \(nothing://") as refused:
        must_be_usable(["json://127.0.0.1", "nothing://ana:s3cret@host"])
    assert "s3cret" not in str(refused.value)
