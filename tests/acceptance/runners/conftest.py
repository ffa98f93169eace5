"""Runs against the simulator, with the real command line."""

from support.runs import assign, models, sandbox, simulator, work

__all__ = ["assign", "models", "sandbox", "simulator", "work"]
