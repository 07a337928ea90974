"""What people run around a backfill knows the models of a dbt location as it knows any other asset."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from backfill_assets.operations.reports.publishing import folder_of
from backfill_assets_tests.dbt.places import FCT, Place, day, days


def test_a_failing_day_is_previewed_paused_verified_resumed_reported_and_checked_by_the_jobs_of_every_location(
    place: Place,
) -> None:
    job, first, last = place.daemon.job, day(1), day(5)
    told = job("preview_backfill", table="analytics.fct_orders", first=first, last=last)
    assert [line["would_be"] for line in told["lines"]] == ["first load"] * 5

    customer = place.spoil(day(3))
    backfill, status = place.backfill(days(1, 5))
    assert status == "COMPLETED_FAILED"
    assert place.loads(backfill) == days(1, 2)
    assert [pause.scope.backfill for pause in place.pauses()] == [backfill]
    assert "its tests failed before the commit" in place.pauses()[0].reason

    asked = {"table": "analytics/fct_orders", "first": first, "last": last}
    wrong = job("verify_range", ok=False, **asked)["said"]
    assert "failed checks: missing_partitions 3. 3 were never loaded, 0 are gone" in wrong
    assert "-w workspace_dbt.yaml --location backfill_assets_dbt -j verify_range" in wrong
    place.mend(customer)
    left = job("resume_backfill", backfill=backfill, by="ana")
    assert [line["partition"] for line in left["lines"]] == days(3, 5)
    job("resume_backfills", backfill=backfill, reason="the customer is back", by="ana")
    (new,) = left["launched"]
    assert place.daemon.end(new) == "COMPLETED_SUCCESS"
    assert place.loads(new) == days(3, 5)
    right = job("verify_range", **asked)
    assert (right["failed"], right["rows"]) == ({}, sum(map(place.wanted, days(1, 5))))

    storage = place.instance.event_log_storage
    graph = place.daemon.workspace.create_request_context().asset_graph
    for name in ("row_count", "duplicate_keys", "late_rows", "unique_fct_orders_order_id"):
        (key,) = [k for k in graph.get_check_keys_for_assets({FCT}) if k.name == name]
        infos = storage.get_asset_check_partition_info([key])
        status_of = {one.partition_key: one.latest_execution_status.value for one in infos}
        assert {status_of[one] for one in days(3, 5)} == {"SUCCEEDED"}, name

    job("report_backfill", backfill=new)
    report = folder_of(place.instance) / f"{new}.md"
    assert "All 3 partitions are done." in report.read_text()


def test_rows_that_came_late_to_a_models_source_are_found_and_loaded(place: Place) -> None:
    backfill, status = place.backfill(days(1, 3))
    assert status == "COMPLETED_SUCCESS", place.said(backfill)
    late = datetime.now(timezone.utc) + timedelta(minutes=1)
    place.warehouse.execute(
        "INSERT INTO raw.orders SELECT 1, customer_id, product_id, ordered_at, quantity, status,"
        f" CAST('{late.isoformat(' ')}' AS TIMESTAMPTZ) FROM raw.orders WHERE order_id ="
        " (SELECT min(order_id) FROM raw.orders WHERE status = 'confirmed')"
    )
    told = place.daemon.job("find_late_rows", table="analytics.fct_orders", launch=True)
    assert [(line["partition"], line["late_rows"]) for line in told["lines"]] == [(day(1), 1)]
    assert place.daemon.end(told["backfill"]) == "COMPLETED_SUCCESS"
    assert place.loads(told["backfill"]) == [day(1)]
    assert place.warehouse.count("analytics.fct_orders", "order_id = 1") == 1


def test_a_preview_of_a_model_that_reads_a_source_changed_in_place_says_what_dagster_and_dbt_refuse(
    place: Place,
) -> None:
    told = place.daemon.job(
        "preview_backfill",
        table="analytics.customers_nightly",
        first=day(1),
        last=day(2),
        reason="again",
    )
    assert all("its source is changed in place" in line["verdict"] for line in told["lines"])
