"""/metrics for Prometheus: what this process answered, and what the database counts of the whole installation."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.monitoring import Monitoring
from service.storage.figures import Figures


class Metrics:
    """The figures of one API process."""

    def __init__(self, monitoring: Monitoring) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "assay_http_requests", "answered requests", ["route", "method", "status"], registry=self._registry
        )
        self._seconds = Histogram("assay_http_seconds", "time to answer", ["route"], registry=self._registry)
        self.watchers = Gauge("assay_watchers", "open event streams", registry=self._registry)
        self._registry.register(Installation(monitoring))

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """One answered request."""
        known = method if method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH") else "other"
        self._requests.labels(route, known, str(status)).inc()
        if not route.endswith("/events"):
            self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)


class Installation(Collector):
    """What the database and the broker count, asked when somebody asks."""

    def __init__(self, monitoring: Monitoring) -> None:
        self._monitoring = monitoring

    def describe(self) -> list[Metric]:
        """Nothing is asked of the database before it must be."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of figures."""
        found = self._monitoring.figures()
        yield from _runs(found)
        yield from _calls(found)
        yield _waits(found)


def _runs(found: Figures) -> Iterator[Metric]:
    queues = GaugeMetricFamily("assay_queue_depth", "messages that wait for a worker role", labels=["queue"])
    for queue, depth in found.queues.items():
        queues.add_metric([queue], depth)
    stages = GaugeMetricFamily("assay_runs", "runs by stage", labels=["stage"])
    outcomes = GaugeMetricFamily("assay_runs_settled", "settled runs by outcome", labels=["outcome"])
    by_stage: dict[str, int] = {}
    for (stage, outcome), number in found.runs.items():
        by_stage[stage] = by_stage.get(stage, 0) + number
        if outcome:
            outcomes.add_metric([outcome], number)
    for stage, number in by_stage.items():
        stages.add_metric([stage], number)
    batches = GaugeMetricFamily("assay_batches", "batches by state", labels=["state"])
    for state, number in found.batches.items():
        batches.add_metric([state], number)
    attempts = CounterMetricFamily("assay_attempts", "attempts at stages by result", labels=["stage", "result"])
    lost = CounterMetricFamily("assay_lease_recoveries", "runs whose worker fell silent", labels=["stage"])
    for (stage, result), number in found.attempts.items():
        attempts.add_metric([stage, result], number)
        if result == "lost":
            lost.add_metric([stage], number)
    yield from (queues, stages, outcomes, batches, attempts, lost)


def _waits(found: Figures) -> Metric:
    waits = CounterMetricFamily("assay_limiter_wait_seconds", "how long requests to a model waited", labels=["model"])
    by_model: dict[str, float] = {}
    for row in found.calls:
        by_model[row["model"]] = by_model.get(row["model"], 0.0) + float(row["waited_seconds"])
    for model, seconds in by_model.items():
        waits.add_metric([model], seconds)
    return waits


def _calls(found: Figures) -> Iterator[Metric]:
    names = {
        "calls": "calls to models",
        "requests": "HTTP requests those calls took",
        "errors": "calls that failed",
        "cost_usd": "what they cost, where the price is known",
        "seconds": "how long they took together",
        "input_tokens": "tokens read",
        "output_tokens": "tokens written",
        "cache_read_tokens": "tokens read from the cache",
        "cache_write_tokens": "tokens written to the cache",
    }
    for name, words in names.items():
        family = CounterMetricFamily(f"assay_model_{name}", words, labels=["purpose", "model"])
        for row in found.calls:
            family.add_metric([row["purpose"], row["model"]], float(row[name]))
        yield family
