"""Spans and metrics of a whole program: on where somebody configured where they go, else off.

Needs the extra ``otel``. An application that has OpenTelemetry providers of its own calls
`instrument`. The command line is told by the standard variables: where
``OTEL_EXPORTER_OTLP_ENDPOINT`` (or ``…_TRACES_ENDPOINT``, ``…_METRICS_ENDPOINT``) is set, it exports
there over HTTP. Without them no network, no thread, and no import of OpenTelemetry.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

logger = logging.getLogger("loki")

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACES, _METRICS = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"


def instrument(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> Callable[[], None]:
    """Make spans and metrics of everything that loki does in this process from now on.

    Args:
        tracer_provider: where spans go; meter_provider: where metrics go. The global ones where
            nothing is said: those export nothing until somebody configures them.

    Returns:
        A function that ends it.

    Raises:
        ImportError: the extra is not installed; says how to.

    Example:
        >>> stop = instrument()
        >>> stop()
    """
    try:
        from loki.adapters.tracing import MetricHandler, SpanHandler
    except ImportError as error:
        raise ImportError(f"{error}: expected `pip install 'loki-core[otel]'`") from error
    handlers: tuple[logging.Handler, ...] = (
        SpanHandler(tracer_provider.get_tracer("loki") if tracer_provider else None),
        MetricHandler(meter_provider.get_meter("loki") if meter_provider else None),
    )
    level = logger.level
    for handler in handlers:
        logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)

    def stop() -> None:
        for handler in handlers:
            handler.close()
            logger.removeHandler(handler)
        logger.setLevel(level)

    return stop


def is_configured(environment: Mapping[str, str]) -> bool:
    """Whether the standard variables say where telemetry goes.

    Example:
        >>> is_configured({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"})
        True
        >>> is_configured({}), is_configured({_ENDPOINT: "http://x", "OTEL_SDK_DISABLED": "true"})
        (False, False)
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(environment.get(name, "").strip() for name in (_ENDPOINT, _TRACES, _METRICS))


def from_environment() -> Callable[[], None] | None:
    """Export to where the standard variables say; nothing at all where they say nothing.

    Protocol, headers, intervals, the service's name and the rest are the OpenTelemetry SDK's, which
    reads its own variables; only OTLP over HTTP is spoken.

    Returns:
        A function that sends what is left and ends it, which the end of the program calls too; None
        where nothing is exported.
    """
    if not is_configured(os.environ):
        return None
    try:
        return _exporting()
    except ImportError as error:
        logger.warning(
            "no telemetry, though OTEL_EXPORTER_OTLP_ENDPOINT is set (%s): expected "
            "`pip install 'loki-core[otel]'`", error,
        )  # fmt: skip
        return None


def _exporting() -> Callable[[], None]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # The SDK's own variables (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) win.
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create({} if named else {"service.name": "loki"})
    both = os.environ.get(_ENDPOINT, "").strip()
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    readers = []
    if both or os.environ.get(_TRACES, "").strip():
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    if both or os.environ.get(_METRICS, "").strip():
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    detach = instrument(tracers, meters)

    def stop() -> None:
        atexit.unregister(stop)
        detach()
        tracers.shutdown()
        meters.shutdown()

    atexit.register(stop)
    return stop
