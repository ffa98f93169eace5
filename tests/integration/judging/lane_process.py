"""A process that does one round of the half-price lane, and is killed where its last argument says."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from support.judging import numbered_run

from service.judging.ask import judge_answer
from service.judging.judgement import JudgeAnswer
from service.judging.lane import LaneRequest, LaneSettings
from service.judging.lane_budget import LaneSpending
from service.judging.lane_store import LaneRows
from service.judging.request import JudgeRequest, build_request
from service.judging.settings import JudgeSettings
from service.judging.shipping import Shipping
from service.limits.memory_budgets import MemoryBudgets
from service.models import ClientSettings, ModelClient
from service.models.lane import Lane, LaneState
from service.storage.engine import open_engine

SETTINGS = JudgeSettings(models=("simulated",), rejudge_share=0.0)
LANE = LaneSettings(max_requests=50, max_age_seconds=0.0, poll_seconds=0.0, lease_seconds=0.0)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingLane(Lane):
    """Reaches the provider and dies before anybody is told."""

    def create(self, requests: Mapping[str, Mapping[str, Any]]) -> LaneState:
        super().create(requests)
        die()
        raise AssertionError("still alive")


class DyingRows(LaneRows):
    """Dies in the middle of keeping the answers."""

    saved = 0

    def save_answer(self, request_id: str, answer: JudgeAnswer) -> bool:
        if self.saved == 3:
            die()
        self.saved += 1
        return super().save_answer(request_id, answer)


def load(request: LaneRequest) -> JudgeRequest:
    return build_request(numbered_run(request.run_id), SETTINGS, request.slot)


def main(database_url: str, model_url: str, where: str) -> None:
    engine = open_engine(database_url)
    client = ModelClient(ClientSettings("test-key", model_url))
    provider = (DyingLane if where == "after create" else Lane)(client.connection, client.prices)
    rows = (DyingRows if where == "while collecting" else LaneRows)(engine)
    spending = LaneSpending(MemoryBudgets(), lambda *_: (), lambda *_: 0.0)
    Shipping(rows, provider, load, judge_answer, spending, lambda _: None, LANE).step()
    client.close()
    engine.dispose()


if __name__ == "__main__":
    main(*sys.argv[1:])
