"""The registry of a manager and its families."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.objects import Resource
from fivespot.runtime.telemetry import Metrics


class FakeQueue:
    name = "machines"

    def __init__(self, ready: int, unfinished: list[float]) -> None:
        self._ready = ready
        self._unfinished = unfinished

    def __len__(self) -> int:
        return self._ready

    def unfinished(self) -> list[float]:
        return self._unfinished


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(process=False)


def lines(metrics: Metrics) -> set[str]:
    return {line for line in metrics.render().decode().splitlines() if not line.startswith("#")}


def test_queue_metrics_carry_the_names_that_dashboards_know(metrics: Metrics) -> None:
    queue = metrics.queue("machines")
    queue.bind(FakeQueue(3, [2.0, 5.5]))
    queue.added()
    queue.picked(0.05)
    queue.finished(2.0)
    queue.retried()
    shown = lines(metrics)
    labels = '{controller="machines",name="machines"}'
    assert {
        f"workqueue_adds_total{labels} 1.0",
        f"workqueue_retries_total{labels} 1.0",
        f"workqueue_depth{labels} 3.0",
        f"workqueue_unfinished_work_seconds{labels} 7.5",
        f"workqueue_longest_running_processor_seconds{labels} 5.5",
        f"workqueue_queue_duration_seconds_sum{labels} 0.05",
        f"workqueue_work_duration_seconds_count{labels} 1.0",
    } <= shown


def test_an_idle_queue_has_no_unfinished_work(metrics: Metrics) -> None:
    metrics.queue("machines").bind(FakeQueue(0, []))
    assert 'workqueue_longest_running_processor_seconds{controller="machines",name="machines"} 0.0' in lines(metrics)


@pytest.mark.parametrize(
    ("result", "counted_as", "errors", "terminal"),
    [
        ("success", "success", 0, 0),
        ("requeue_after", "requeue_after", 0, 0),
        ("requeue", "requeue", 0, 0),
        ("error", "error", 1, 0),
        ("terminal", "error", 1, 1),
    ],
)
def test_results_of_runs_are_counted_as_controller_runtime_does(
    metrics: Metrics, result: str, counted_as: str, errors: int, terminal: int
) -> None:
    controller = metrics.controller("machines")
    controller.active(1)
    controller.workers(8)
    controller.result(result, 0.2)
    shown = lines(metrics)
    assert {
        f'controller_runtime_reconcile_total{{controller="machines",result="{counted_as}"}} 1.0',
        f'controller_runtime_reconcile_errors_total{{controller="machines"}} {errors}.0',
        f'controller_runtime_terminal_reconcile_errors_total{{controller="machines"}} {terminal}.0',
        'controller_runtime_active_workers{controller="machines"} 1.0',
        'controller_runtime_max_concurrent_reconciles{controller="machines"} 8.0',
        'controller_runtime_reconcile_time_seconds_bucket{controller="machines",le="0.25"} 1.0',
        'controller_runtime_reconcile_time_seconds_bucket{controller="machines",le="0.1"} 0.0',
    } <= shown


def test_requests_without_an_answer_are_told_apart_from_those_with_one(metrics: Metrics) -> None:
    metrics.requests("get", 200)
    metrics.requests("get", 200)
    metrics.requests("patch", 0)
    assert {
        'rest_client_requests_total{code="200",method="GET"} 2.0',
        'rest_client_requests_total{code="<error>",method="PATCH"} 1.0',
    } <= lines(metrics)


def test_a_resource_counts_as_synced_only_when_all_its_informers_are(metrics: Metrics) -> None:
    machines = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
    facts: list[Any] = [
        SimpleNamespace(resource=machines, synced=True, objects=3, relists=1, undecodable=0),
        SimpleNamespace(resource=machines, synced=False, objects=4, relists=2, undecodable=2),
    ]
    metrics.informers(lambda: facts)
    name = '{resource="machines.cluster.x-k8s.io"}'
    assert {
        f"fivespot_informer_synced{name} 0.0",
        f"fivespot_informer_objects{name} 7.0",
        f"fivespot_informer_relists_total{name} 3.0",
        f"fivespot_informer_undecodable_objects{name} 2.0",
    } <= lines(metrics)


def test_gauges_of_the_cluster_are_shown_by_the_leader_only(metrics: Metrics) -> None:
    metrics.reading("fivespot_machines_active", "Up.", (), lambda: [((), 5.0)], leader_only=True)
    metrics.gauge("fivespot_time_based_active", "Open.", ("name",), leader_only=True).child("office").set(1)
    assert {"fivespot_machines_active 5.0", 'fivespot_time_based_active{name="office"} 1.0'} <= lines(metrics)
    metrics.leading = False
    assert not lines(metrics)


def test_a_removed_child_leaves_no_sample_behind(metrics: Metrics) -> None:
    family = metrics.gauge("fivespot_time_based_active", "Open.", ("namespace", "name"))
    family.child("prod", "office").set(1)
    family.remove("prod", "office")
    family.remove("prod", "never")
    assert not lines(metrics)


def test_a_family_asked_for_twice_is_the_same_and_a_clash_is_refused(metrics: Metrics) -> None:
    family = metrics.counter("fivespot_errors_total", "Errors.", ("error_type",))
    assert metrics.counter("fivespot_errors_total", "Errors.", ("error_type",)) is family
    with pytest.raises(ValueError, match="fivespot_errors_total exists"):
        metrics.counter("fivespot_errors_total", "Errors.", ("kind",))
    with pytest.raises(ValueError, match="must end in _total"):
        metrics.counter("fivespot_errors", "Errors.")
    with pytest.raises(ValueError, match="has labels"):
        family.child("a", "b")


def test_a_value_on_a_bound_belongs_to_its_bucket(metrics: Metrics) -> None:
    child = metrics.histogram("h_seconds", "H.", (), (0.1, 1.0)).child()
    for value in (0.1, 0.5, 1.0, 7.0):
        child.observe(value)
    assert {
        'h_seconds_bucket{le="0.1"} 1.0',
        'h_seconds_bucket{le="1.0"} 3.0',
        'h_seconds_bucket{le="+Inf"} 4.0',
        "h_seconds_count 4.0",
        "h_seconds_sum 8.6",
    } == lines(metrics)


def test_bounds_that_do_not_increase_are_refused(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="must increase"):
        metrics.histogram("h_seconds", "H.", (), (1.0, 0.1))


def test_no_created_samples_are_written(metrics: Metrics) -> None:
    metrics.counter("fivespot_errors_total", "Errors.").child().inc()
    metrics.info("fivespot_controller_info", "This process.", version="1")
    assert "_created" not in metrics.render().decode()
    assert 'fivespot_controller_info{version="1"} 1.0' in lines(metrics)


async def test_samples_of_one_answer_are_of_one_instant(metrics: Metrics) -> None:
    cell = metrics.counter("fivespot_errors_total", "Errors.").child()

    class Late(InlineOffload):
        async def run(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            cell.inc(100)
            return fn(*args, **kwargs)

    assert b"fivespot_errors_total 0.0" in await metrics.render_with(Late())


def test_two_managers_in_one_process_share_nothing() -> None:
    first, second = Metrics(process=False), Metrics(process=True)
    first.queue("machines").added()
    assert "machines" not in second.render().decode()
    assert "process_resident_memory_bytes" in second.render().decode()
