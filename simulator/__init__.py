"""A Messages API on loopback for demos, tests and benchmarks; it knows nobody of ours.

    from simulator import start

    with start(script="evals/simulation.json") as simulator:
        Anthropic(base_url=simulator.url, api_key="any")

Every answer carries the header `x-assay-simulated: 1` and the model name `simulated`.
"""

from simulator.handle import Simulator, start
from simulator.settings import Settings

__all__ = ["Settings", "Simulator", "start"]
