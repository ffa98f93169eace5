"""Sending and collecting shipments of the half-price lane.

Creating a message batch cannot be repeated safely: the provider knows no idempotency key. So the shipment is written
down before it is sent. If its sender dies before the provider's id is written down, the next one looks through the
provider's recent batches for one that nobody knows and that has as many requests, and takes it for ours; when its
results come, their ids prove it. Only if there is none are the requests sent again. Collecting is safe to repeat.

Who sends holds the shipment by a lease, and renews it right before the request: nobody else can find the shipment
abandoned while the request is under way. Who lost the lease sends nothing.
"""

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from schemas.states import Outcome
from service import log
from service.errors import BadInput, StageFailed, Unavailable
from service.judging.judgement import JudgeAnswer
from service.judging.lane import LaneRequest, LaneSettings, LaneStore, RequestState, Shipment
from service.judging.request import JudgeRequest
from service.limits.budgets import OverBudget
from service.limits.port import RetryLater


class ProviderState(Protocol):
    """Where a provider's batch stands."""

    @property
    def id(self) -> str: ...
    @property
    def has_ended(self) -> bool: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def created_at(self) -> str: ...


class ProviderResult(Protocol):
    """What became of one request at the provider."""

    @property
    def custom_id(self) -> str: ...
    @property
    def answer(self) -> Any: ...
    @property
    def error(self) -> str | None: ...


class Provider(Protocol):
    """The provider's message batches."""

    def create(self, requests: Mapping[str, Mapping[str, Any]]) -> ProviderState: ...
    def retrieve(self, lane_id: str) -> ProviderState: ...
    def recent(self, limit: int = 20) -> Iterable[ProviderState]: ...
    def cancel(self, lane_id: str) -> ProviderState: ...
    def results(self, lane_id: str, models: Mapping[str, str]) -> Iterator[ProviderResult]: ...


class LaneBudget(Protocol):
    """What the lane spends."""

    def reserve(self, request: LaneRequest, body: JudgeRequest) -> None:
        """Before it is sent; repeating is safe; raises OverBudget or RetryLater."""

    def correct(self, request: LaneRequest, answer: JudgeAnswer | None) -> None:
        """After it came back, with or without an answer."""


Load = Callable[[LaneRequest], JudgeRequest]  # builds a request's body again; raises StageFailed if it cannot
Read = Callable[[Any], JudgeAnswer]  # a provider's answer in the judge's words
Wake = Callable[[list[int]], None]  # runs whose judgements came: look at them now


class Shipping:
    """What the control task does with the lane; any number of processes may do it at once."""

    def __init__(
        self,
        store: LaneStore,
        provider: Provider,
        load: Load,
        read: Read,
        budget: LaneBudget,
        wake: Wake,
        settings: LaneSettings | None = None,
    ) -> None:
        self._store = store
        self._provider = provider
        self._load = load
        self._read = read
        self._budget = budget
        self._wake = wake
        self._settings = settings or LaneSettings()

    def step(self) -> None:
        """One round: find what was stranded, send what is full or old, collect what ended, cancel what nobody wants."""
        for shipment in self._store.claim_stranded(self._settings.lease_seconds):
            self._patiently(self._find, shipment)
        while packed := self._store.pack(self._settings):
            shipment, requests = packed
            if not self._patiently(functools.partial(self._goes_out, requests), shipment):
                break
        for shipment in self._store.claim_due(self._settings):
            self._patiently(self._collect_or_return, shipment)
        for shipment in self._store.claim_unwanted(self._settings):
            self._patiently(self._cancel, shipment)

    def _patiently(self, work: Callable[[Shipment], object], shipment: Shipment) -> bool:
        """What goes wrong with one shipment stops that one, not the round; the lease brings it back."""
        try:
            return bool(work(shipment))
        except (Unavailable, StageFailed) as error:
            log.warning("shipment waits", shipment=shipment.id, reason=str(error))
        except Exception:  # noqa: BLE001  the door of a shipment: the others are not to wait for it
            log.error("shipment broke, trying again", with_traceback=True, shipment=shipment.id)
        return False

    def _goes_out(self, requests: list[LaneRequest], shipment: Shipment) -> bool:
        """Whether anything was sent: requests that must wait would be packed again and again."""
        bodies: dict[str, JudgeRequest] = {}
        held = self._load_all(shipment, requests, bodies)
        if held is None:
            log.warning("shipment was taken over before it was sent", shipment=shipment.id)
            return False
        if not bodies:
            self._store.mark_lost(shipment.id)
            return False
        self._send([request for request in requests if request.id in bodies], bodies, held)
        return True

    def _load_all(
        self, shipment: Shipment, requests: list[LaneRequest], bodies: dict[str, JudgeRequest]
    ) -> Shipment | None:
        """Fill in the bodies, and keep the lease meanwhile; None when somebody else took the shipment."""
        held: Shipment | None = shipment
        lease_seconds = self._settings.lease_seconds
        renewed = time.monotonic()
        for request in requests:
            if time.monotonic() - renewed >= lease_seconds / 3:
                held, renewed = held and self._store.renew(held, lease_seconds), time.monotonic()
            if held is None:
                return None
            if body := self._body(held, request):
                bodies[request.id] = body
        # Once more, whatever is left: the request that follows must end before the lease does.
        return held and self._store.renew(held, lease_seconds)

    def _cancel(self, shipment: Shipment) -> None:
        self._provider.cancel(str(shipment.provider_id))
        # Only now: while the provider is away the cancel is still to be done.
        self._store.mark_cancelled(shipment.id)
        log.info("shipment cancelled", shipment=shipment.id, provider=shipment.provider_id)

    def _send(self, requests: list[LaneRequest], bodies: dict[str, JudgeRequest], shipment: Shipment) -> None:
        try:
            state = self._provider.create({id_: body.params() for id_, body in bodies.items()})
        except StageFailed as refused:
            # A refusal is an answer: nothing was created.
            self._store.unpack(shipment.id, bodies, RequestState.RETURNED, str(refused))
            self._store.mark_lost(shipment.id)
            for request in requests:
                # Else the realtime lane would find the money reserved that it is to be asked with.
                self._budget.correct(request, None)
            return
        if not self._store.mark_sent(shipment, state.id):
            # Its requests go with another shipment now: they must not be paid for here as well.
            self._provider.cancel(state.id)
            log.error("shipment was taken over while it was sent", shipment=shipment.id, provider=state.id)
            return
        log.info("shipment sent", shipment=shipment.id, provider=state.id, requests=len(bodies))

    def _body(self, shipment: Shipment, request: LaneRequest) -> JudgeRequest | None:
        """The body, paid for in advance; None when the request does not go with this shipment."""
        try:
            body = self._load(request)
            if body.id != request.id:
                raise StageFailed(
                    Outcome.JUDGE_ERROR, f"the material of judgement {request.id[:12]} has changed meanwhile"
                )
            self._budget.reserve(request, body)
        except OverBudget as over:
            self._store.unpack(shipment.id, [request.id], RequestState.OVER_BUDGET, str(over))
        except RetryLater:
            self._store.unpack(shipment.id, [request.id], RequestState.WAITING, None)
        except (StageFailed, BadInput) as failure:
            self._store.unpack(shipment.id, [request.id], RequestState.RETURNED, str(failure))
        else:
            return body
        return None

    def _find(self, shipment: Shipment) -> None:
        """Its sender died before it wrote down the provider's id: did the provider get it?"""
        taken = self._store.taken_providers(shipment.id)
        earliest = shipment.created_at - self._settings.clock_skew_seconds
        for state in self._provider.recent(100):
            is_new = state.id not in taken and moment(state.created_at) >= earliest
            if is_new and sum(state.counts.values()) == shipment.request_count:
                self._store.mark_sent(shipment, state.id, is_found=True)
                log.warning("shipment found at the provider", shipment=shipment.id, provider=state.id)
                return
        self._store.mark_lost(shipment.id)
        log.warning("shipment never left, its requests wait again", shipment=shipment.id)

    def _collect_or_return(self, shipment: Shipment) -> None:
        """A provider that does not know the batch any more never will: its requests go to the realtime lane."""
        try:
            self._collect(shipment)
        except StageFailed as gone:
            log.error("shipment cannot be collected", shipment=shipment.id, reason=str(gone))
            self._settle_all(shipment, self._store.requests_of(shipment.id), {}, str(gone))

    def _collect(self, shipment: Shipment) -> None:
        if not self._provider.retrieve(str(shipment.provider_id)).has_ended:
            return
        requests = self._store.requests_of(shipment.id)
        models = {id_: request.slot.model for id_, request in requests.items()}
        results = {result.custom_id: result for result in self._provider.results(str(shipment.provider_id), models)}
        if not results.keys() <= requests.keys():
            self._store.reject_provider(shipment.id)
            log.warning("provider batch is not ours", shipment=shipment.id, provider=shipment.provider_id)
            return
        self._settle_all(shipment, requests, results, "no result")
        log.info("shipment collected", shipment=shipment.id, results=len(results), requests=len(requests))

    def _settle_all(
        self,
        shipment: Shipment,
        requests: Mapping[str, LaneRequest],
        results: Mapping[str, ProviderResult],
        otherwise: str,
    ) -> None:
        """Keep what came; what did not is asked in real time."""
        for id_, request in requests.items():
            self._settle(request, results.get(id_), otherwise)
        self._store.mark_collected(shipment.id)
        self._wake(sorted({request.run_id for request in requests.values()}))

    def _settle(self, request: LaneRequest, result: ProviderResult | None, otherwise: str) -> None:
        """Keep one result; what was kept before is left alone."""
        if result is not None and result.answer is not None:
            answer = self._read(result.answer)
            if self._store.save_answer(request.id, answer):
                self._budget.correct(request, answer)
        elif self._store.save_return(request.id, (result.error if result else None) or otherwise):
            self._budget.correct(request, None)


def moment(text: str) -> float:
    """Seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
