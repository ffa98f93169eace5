"""The one place where real parts are chosen, each built on first use, so that a forked process builds its own."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from service.aggregate import Aggregate
from service.batches import BatchDesk
from service.catalogue import Catalogue
from service.check import Check
from service.checks import Tools
from service.checks.engine import Engine
from service.compare import Compare
from service.comparing.analyst import Analyst
from service.comparing.kept import KeptAnswers
from service.comparisons import ComparisonDesk
from service.errors import BadInput
from service.events import Watching
from service.execute import Execute
from service.given_runs import GivenRuns
from service.jobs import Jobs
from service.judge import Judge
from service.judging.ask import judge_answer
from service.judging.kept import KeptJudgements
from service.judging.lane import LaneSettings
from service.judging.lane_budget import LaneSpending
from service.judging.lane_store import LaneRows
from service.judging.shipping import Shipping
from service.leases import Leases
from service.model_access import ModelAccess, open_models
from service.models import ModelClient
from service.models.lane import Lane
from service.monitoring import Monitoring
from service.queue import Broker
from service.recovery import Recovery
from service.regrade import Regrade
from service.results import Results
from service.reviews import Reviews
from service.runners.claude_code import ClaudeCodeRunner
from service.runners.command import CommandRunner
from service.runners.messages import MessagesRunner
from service.runners.port import Runner
from service.sandbox.archive import UnpackCaps
from service.sandbox.opening import open_sandbox
from service.sandbox.port import Sandbox
from service.settings import Settings
from service.stages import Stages
from service.storage.artifacts import ArtifactStore, DatabaseArtifacts, FilesystemArtifacts
from service.storage.engine import open_engine
from service.storage.store import Store
from service.submitting import Submitting
from service.take_in import TakeIn
from service.tokens import TokenDesk
from service.uploads import Uploads
from service.webhooks import Webhooks

T = TypeVar("T")


class Parts:
    """The parts of one process. Every part is built once, under one lock: first calls of a thread pool race."""

    def __init__(self, settings: Settings, is_worker: bool = False) -> None:
        self.settings = settings
        self._is_worker = is_worker
        self._built: dict[str, Any] = {}
        self._building = threading.RLock()

    def _once(self, name: str, build: Callable[[], T]) -> T:
        with self._building:
            if name not in self._built:
                self._built[name] = build()
            return cast(T, self._built[name])

    def close(self) -> None:
        """Close what was opened: the connection to the model, then the database."""
        if "models" in self._built:
            self.models.close()
        self.store.close()

    @property
    def store(self) -> Store:
        """The database."""
        return self._once("store", lambda: Store(open_engine(self.settings.database, ping_first=not self._is_worker)))

    @property
    def artifacts(self) -> ArtifactStore:
        """Where artifacts are kept."""
        return self._once("artifacts", self._open_artifacts)

    def _open_artifacts(self) -> ArtifactStore:
        if self.settings.artifacts == "database":
            return DatabaseArtifacts(self.store.engine, self.settings.artifact_max_bytes)
        return FilesystemArtifacts(self.settings.artifact_root, self.settings.artifact_max_bytes)

    @property
    def broker(self) -> Broker:
        """Where nudges are sent."""
        return self._once("broker", lambda: Broker(self.settings))

    @property
    def leases(self) -> Leases:
        """What this process holds."""
        seconds = (self.settings.lease_seconds, self.settings.heartbeat_seconds)
        return self._once("leases", lambda: Leases(self.store.runs, *seconds))

    @property
    def recovery(self) -> Recovery:
        """Who looks for what stands still."""
        return self._once("recovery", lambda: Recovery(self.settings, self.store, self.broker))

    @property
    def stages(self) -> Stages:
        """Who claims, saves and hands on."""
        parts = (self.settings, self.store, self.artifacts, self.broker, self.leases, worker_name())
        return self._once("stages", lambda: Stages(*parts))

    @property
    def sandbox(self) -> Sandbox:
        """How commands are confined; refuses rather than weakens."""
        return self._once("sandbox", lambda: open_sandbox(self.settings.sandbox))

    @property
    def execute(self) -> Execute:
        """The middle of the stage execute."""
        return self._once("execute", lambda: Execute(self.settings, self.artifacts, self.runner))

    @property
    def check(self) -> Check:
        """The middle of the stage check."""
        return self._once("check", lambda: Check(self.settings, self.store.runs, self.artifacts, self.check_tools))

    @property
    def check_tools(self) -> Tools:
        """What structural checks work with; the sandbox is opened when a script comes."""
        return self._once("check tools", lambda: Tools(Engine(), lambda: self.sandbox))

    @property
    def judge(self) -> Judge:
        """The middle of the stage judge."""
        return self._once("judge", self._open_judge)

    def _open_judge(self) -> Judge:
        kept, jobs = KeptJudgements(self.store.engine), Jobs(self.store)
        return Judge(self.settings, self.store.runs, self.artifacts, lambda: self.models, kept, self.lane, jobs)

    @property
    def compare(self) -> Compare:
        """The stage compare, whole."""
        return self._once("compare", self._open_compare)

    def _open_compare(self) -> Compare:
        kept = KeptAnswers(self.store.engine)
        return Compare(self.settings, self.store, self.artifacts, lambda: self.models, kept, worker_name())

    @property
    def lane(self) -> LaneRows:
        """Judgements on their way at half the price."""
        return self._once("lane", lambda: LaneRows(self.store.engine))

    def ship(self) -> None:
        """One round of the half-price lane; nothing is built while nobody uses it."""
        if self.lane.has_work():
            self._once("shipping", self._open_shipping).step()

    def _open_shipping(self) -> Shipping:
        access = self._access
        spending = LaneSpending(
            access.budgets, lambda one, moment: access.accounts.of(one.team, one.batch_id, moment), access.worst_cost
        )
        provider = Lane(access.client.connection, access.client.prices)
        ages = (self.settings.lane_age_seconds, self.settings.lane_poll_seconds)
        settings = LaneSettings(max_age_seconds=ages[0], poll_seconds=ages[1])
        return Shipping(self.lane, provider, self.judge.rebuild, judge_answer, spending, self.store.runs.wake, settings)

    @property
    def models(self) -> ModelClient:
        """The model client; built on first use, because it costs most of a second."""
        return self._access.client

    @property
    def _access(self) -> ModelAccess:
        concurrency = self.settings.executor_concurrency + self.settings.judge_concurrency
        concurrency += self.settings.compare_concurrency
        return self._once("models", lambda: open_models(self.settings, self.store, concurrency))

    @property
    def aggregate(self) -> Aggregate:
        """The middle of the stage aggregate."""
        return self._once("aggregate", lambda: Aggregate(self.store, self.artifacts, self._open_analyst()))

    def _open_analyst(self) -> Analyst:
        return Analyst(lambda: self.models, KeptAnswers(self.store.engine), self.settings.judge_timeout_seconds)

    @property
    def desk(self) -> BatchDesk:
        """What doors may ask."""
        return self._once("desk", self._open_desk)

    def _open_desk(self) -> BatchDesk:
        submitting = Submitting(self.settings, self.store, self.artifacts, self.check_tools)
        return BatchDesk(
            self.store, self.artifacts, self.broker, submitting, self.lane.cancel, self.lane.forget_answers
        )

    @property
    def comparisons(self) -> ComparisonDesk:
        """What doors may ask about comparisons."""
        parts = (self.settings, self.store, self.artifacts, self.broker)
        return self._once("comparisons", lambda: ComparisonDesk(*parts))

    @property
    def take_in(self) -> TakeIn:
        """How run folders that something else produced come in."""
        parts = (self.settings, self.artifacts, self.check_tools, GivenRuns(self.store, self.artifacts))
        return self._once("take in", lambda: TakeIn(*parts))

    @property
    def regrade(self) -> Regrade:
        """How an old batch is graded anew."""
        given_runs = GivenRuns(self.store, self.artifacts)
        parts = (self.settings, self.store, self.artifacts, self.check_tools, given_runs)
        return self._once("regrade", lambda: Regrade(*parts))

    @property
    def tokens(self) -> TokenDesk:
        """Who may do what."""
        return self._once("tokens", lambda: TokenDesk(self.store))

    @property
    def uploads(self) -> Uploads:
        """How skills come in."""
        caps = UnpackCaps(archive_bytes=self.settings.upload_max_bytes)
        commands = self.settings.commands
        return self._once("uploads", lambda: Uploads(self.store, self.artifacts, self.desk, caps, commands))

    @property
    def reviews(self) -> Reviews:
        """What people say about runs."""
        return self._once("reviews", lambda: Reviews(self.store))

    @property
    def results(self) -> Results:
        """What a batch comes to, in the forms people fetch."""
        parts = (self.artifacts, self.desk, self.aggregate, self.reviews)
        return self._once("results", lambda: Results(*parts))

    @property
    def catalogue(self) -> Catalogue:
        """The skills of teams."""
        return self._once("catalogue", lambda: Catalogue(self.store, self.artifacts))

    @property
    def watching(self) -> Watching:
        """What happens to batches."""
        return self._once("watching", lambda: Watching(self.store))

    @property
    def webhooks(self) -> Webhooks:
        """Who is told when a batch ends."""
        return self._once("webhooks", lambda: Webhooks(self.settings, self.store))

    @property
    def monitoring(self) -> Monitoring:
        """Figures of the installation."""
        return self._once("monitoring", lambda: Monitoring(self.store, self.broker))

    def runner(self, name: str) -> Runner:
        """The way to execute cases of that name."""
        builders: dict[str, Callable[[], Runner]] = {
            "command": lambda: CommandRunner(self.sandbox, self.settings.command_network, self._own_folders),
            "messages": lambda: MessagesRunner(self.models, self.sandbox),
            "claude_code": lambda: ClaudeCodeRunner(self.models, self.sandbox),
        }
        if name not in builders:
            raise BadInput(f"there is no runner {name!r}; known runners: {', '.join(sorted(builders))}")
        return self._once(f"runner {name}", builders[name])

    @property
    def _own_folders(self) -> tuple[Path, ...]:
        """Where this installation keeps what no command may be shown."""
        client = self.settings.client_file.expanduser().parent
        return (self.settings.data, self.settings.artifact_root, self.settings.secrets, client)


def worker_name() -> str:
    """Who we are in leases and logs: machine and process."""
    return f"{socket.gethostname()}:{os.getpid()}"
