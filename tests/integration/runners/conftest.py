"""Runs against the simulator, with the runner `messages`."""

import pytest
from support.runs import assign, models, sandbox, simulator, work

from service.models import ModelClient
from service.runners.messages import AgentLimits, MessagesRunner
from service.sandbox import Sandbox

__all__ = ["assign", "models", "sandbox", "simulator", "work"]


@pytest.fixture
def runner(models: ModelClient, sandbox: Sandbox) -> MessagesRunner:
    return MessagesRunner(models, sandbox, AgentLimits(turns=25))
