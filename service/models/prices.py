"""What a call costs, from a data file; a model that is not in it has no price, and we say so."""

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from service.models.port import Tokens

PER = 1_000_000
BATCH_SHARE = 0.5  # message batches cost half


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float

    def of(self, tokens: Tokens) -> float:
        """The cost of one call."""
        short = tokens.cache_write - tokens.cache_write_1h
        parts = (
            tokens.input * self.input,
            tokens.output * self.output,
            tokens.cache_read * self.cache_read,
            short * self.cache_write_5m,
            tokens.cache_write_1h * self.cache_write_1h,
        )
        return sum(parts) / PER


class Prices:
    """A price table."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._models: dict[str, list[dict[str, float]]] = table["models"]

    def cost(self, model: str, tokens: Tokens, lane: str = "direct") -> float | None:
        """What a call costs in US dollars; None when the table does not know the model."""
        price = self._price(model, tokens.input + tokens.cache_read + tokens.cache_write)
        if price is None:
            return None
        return round(price.of(tokens) * (BATCH_SHARE if lane == "batch" else 1.0), 8)

    def worst(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """The most a call of this size can cost: nothing read from the cache, all of it written there."""
        written = Tokens(output=output_tokens, cache_write=input_tokens)
        plain = Tokens(output=output_tokens, input=input_tokens)
        costs = [cost for tokens in (written, plain) if (cost := self.cost(model, tokens)) is not None]
        return max(costs, default=None)

    def _price(self, model: str, prompt_tokens: int) -> Price | None:
        tiers = self._models.get(model)
        for tier in tiers or ():
            most = tier.get("up_to_prompt_tokens")
            if most is None or prompt_tokens <= most:
                return Price(**{name: value for name, value in tier.items() if name != "up_to_prompt_tokens"})
        return None


@functools.cache
def known_prices() -> Prices:
    """The table that comes with Assay."""
    text = resources.files("service.models").joinpath("prices.json").read_text(encoding="utf-8")
    return Prices(json.loads(text))
