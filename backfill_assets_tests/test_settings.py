"""Settings tell everything that is wrong with them at once, and show no secret."""

from __future__ import annotations

import pytest

from backfill_assets.controls.alerts import must_be_usable
from backfill_assets.errors import DeclarationError
from backfill_assets.settings import Settings, read


def test_all_problems_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "LANE_EXECUTOR": "celery",
        "LIVE_DAYS": "-1",
        "ON_FAILURE": "0",
        "HOLD_SECOND": "5",
        "LANE_K8S_CONFIG": '{"cpu": 4}',
    }.items():
        monkeypatch.setenv(f"BACKFILL_{name}", value)
    with pytest.raises(DeclarationError) as refused:
        read()
    for said in (
        "BACKFILL_CELERY_BROKER is not set",
        "BACKFILL_LIVE_DAYS",
        "BACKFILL_ON_FAILURE",
        "is BACKFILL_HOLD_SECONDS meant?",
        "BACKFILL_LANE_K8S_CONFIG has 'cpu', which the tag does not know",
    ):
        assert said in str(refused.value)


def test_what_kubernetes_knows_is_taken() -> None:
    config = {"container_config": {"resources": {"limits": {"cpu": "4"}}}}
    assert Settings(lane_k8s_config=config).lane_k8s_config == config


def test_every_alert_url_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        DeclarationError, match=r"1 \(nothing://\.\.\.\), 3 \(no scheme://"
    ) as refused:
        must_be_usable(["nothing://s3cret", "json://host/x", "s3cret"])
    assert "s3cret" not in str(refused.value)


def test_settings_in_a_traceback_or_a_log_show_no_secret() -> None:
    secret = {
        "warehouse_url": "postgresql://ana:s3cret@host/db",
        "lane_warehouse_url": "postgresql://ana:s3cret@host/db",
        "dagster_pg_url": "postgresql://ana:s3cret@host/db",
        "alerts": "slack://s3cret/b/c",
        "celery_broker": "redis://:s3cret@host",
        "celery_backend": "redis://:s3cret@host",
        "lane_k8s_config": {"container_config": {"env": [{"name": "X", "value": "s3cret"}]}},
    }
    found = Settings.model_validate(secret)
    assert "s3cret" not in f"{found!r} {found}"
    with pytest.raises(ValueError, match="live_days") as refused:
        Settings.model_validate({**secret, "live_days": "s3cret"})
    assert "s3cret" not in str(refused.value)
