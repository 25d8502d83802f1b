"""What a call to a model costs, by a table of prices; the table is data, in ``prices.yml``."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from loki.base.tokens import TokenUsage

_VERSION = re.compile(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|-latest|-preview(-[\d-]+)?|@\d{8}|\[1m\])+$")
"""What stands behind a model's name where one version of it is meant."""

MILLION = 1_000_000

logger = logging.getLogger("loki")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens.

    Attributes:
        input: of the request.
        output: of the answer.
        cache_read: of the request, out of the provider's cache; None: as any other.
        cache_write: of the request, into it; None: as any other.
        over_tokens: requests longer than this cost ``over`` instead; None: there is no such limit.
        over: what they cost.

    Raises:
        ValueError: a price is no number of 0 or more.

    Example:
        >>> price = Price(input=3, output=15, cache_read=0.3)
        >>> price.cost(TokenUsage(input=1_000_000, output=100_000, cache_read=900_000))
        2.07
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    over_tokens: int | None = None
    over: Price | None = None

    def __post_init__(self) -> None:
        """Refuse what is no price."""
        for name in ("input", "output", "cache_read", "cache_write"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(
                    f"the price of {name} is {value!r}: expected a number of 0 or more"
                )

    def cost(self, usage: TokenUsage) -> float:
        """US dollars for one request."""
        if self.over is not None and usage.input > (self.over_tokens or 0):
            return self.over.cost(usage)
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
        dollars = (
            fresh * self.input
            + usage.cache_read * read
            + usage.cache_write * write
            + usage.output * self.output
        )
        return round(dollars / MILLION, 9)


class Prices:
    """Prices by model.

    Args:
        own: prices that are believed before the built-in table's, by the model's name.

    Example:
        >>> prices = Prices({"our-model": Price(1, 2)})
        >>> prices.of("claude-sonnet-4-5-20250929").output, prices.of("our-model").output
        (15, 2)
        >>> prices.of("somebody-elses") is None
        True
    """

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = dict(own or {})
        self._unknown: set[str] = set()

    def of(self, model: str) -> Price | None:
        """What a model costs; None: not known."""
        for table in (self._own, _table()):
            for name in _names(model):
                if name in table:
                    return table[name]
        return None

    def cost(self, model: str, usage: TokenUsage) -> float | None:
        """US dollars for one request; None where the price is not known, which is said once.

        Args:
            model: as it was asked for, or as the provider names it.
            usage: its tokens.
        """
        price = self.of(model)
        if price is not None:
            return price.cost(usage)
        if not usage.total:
            return 0.0
        if model not in self._unknown:
            self._unknown.add(model)
            logger.warning(
                "[closed-loop] what %s costs is not known, so no limit of money counts it: "
                '[prices."%s"] in .loki/config.toml can say (input, output: US dollars for a million '
                "tokens)",
                model,
                model,
            )
        return None


def _names(model: str) -> list[str]:
    """Names that a model may have in a table, the most exact first."""
    plain = model.rsplit("/", 1)[-1]
    return [model, plain, _VERSION.sub("", plain)]


@cache
def _table() -> Mapping[str, Price]:
    from loki.base.yaml_text import load_file  # only here: importing loki stays light

    data = load_file(Path(__file__).with_name("prices.yml"))
    return {
        model: _price(entry)
        for provider in data["providers"].values()
        for model, entry in provider["models"].items()
    }


def _price(entry: Mapping[str, Any]) -> Price:
    plain = dict(entry)
    longer = plain.pop("over", None)
    if not longer:
        return Price(**plain)
    over = {name: value for name, value in longer.items() if name != "tokens"}
    return Price(**plain, over_tokens=longer["tokens"], over=Price(**over))
