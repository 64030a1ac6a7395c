"""Read the metrics of a scheduler."""

from __future__ import annotations

import ssl
import urllib.request


def scrape(address: str, scheme: str = "http") -> str:
    """Return the metrics that are served at ``host:port``."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
    )
    with opener.open(f"{scheme}://{address}/metrics", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def metric_sum(text: str, name: str, **labels: str) -> float:
    """Return the sum of the series of a metric that have these labels; 0 where there is none."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    total = 0.0
    for line in text.splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] == name and all(each in series for each in wanted):
            total += float(value)
    return total
