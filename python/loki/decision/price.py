"""What a call to a model costs: by a project's own prices, else by those of ``genai-prices``."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

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


PROVIDERS = ("anthropic", "openai", "google")
"""Those whose models run nowhere else; another's may run anywhere, on one's own machine, too."""


class Prices:
    """Prices by model.

    Args:
        own: prices by the model's name, which are believed before others of the same name.

    Example:
        >>> prices = Prices({"our-model": Price(1, 2)})
        >>> prices.cost(TokenUsage(1_000_000, 1_000_000), "our-model"), prices.of("gpt-5") is None
        (3.0, True)
    """

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = dict(own or {})
        self._unknown: set[str] = set()

    def of(self, model: str) -> Price | None:
        """What a model costs by the own prices; None: they do not say."""
        plain = model.rsplit("/", 1)[-1]
        names = (model, plain, _VERSION.sub("", plain))
        return next((self._own[name] for name in names if name in self._own), None)

    def cost(self, usage: TokenUsage, *names: str) -> float | None:
        """US dollars for one request; None where the price is not known, which is said once.

        Args:
            usage: its tokens.
            names: of the model, the most exact first: as the provider names it, as it was asked for.
        """
        if not usage.total:
            return 0.0
        for name in names:
            price = self.of(name)
            cost = _known(name, usage) if price is None else price.cost(usage)
            if cost is not None:
                return cost
        model = names[-1]
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


def _known(model: str, usage: TokenUsage) -> float | None:
    """US dollars for one request by the prices of ``genai-prices``, which nothing is fetched for."""
    try:
        from genai_prices import Usage, calc_price  # only here: it takes a third of a second
    except ImportError:  # it comes with the clients of models
        return None
    tokens = Usage(
        input_tokens=max(usage.input, usage.cache_read + usage.cache_write),
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    for provider in PROVIDERS:
        with suppress(LookupError):
            found = calc_price(tokens, model.rsplit("/", 1)[-1], provider_id=provider)
            return round(float(found.total_price), 9)
    return None
