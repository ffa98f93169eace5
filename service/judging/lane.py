"""What the half-price lane is made of: requests, shipments, and the store that keeps them.

request    waiting -> sending -> sent -> answered
              ^         |         |----> returned    errored or expired: asked again in real time
              +---------+         |
            over_budget, cancelled

What is settled without an answer is not settled for ever: over_budget holds for the run that is told so, once;
cancelled holds as long as the batch that asks is cancelled itself.

shipment   sending -> sent -> collected           one provider message batch
              +-----> lost                        it never reached the provider; its requests wait again
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from service.judging.judgement import JudgeAnswer
from service.judging.request import Slot


class RequestState(StrEnum):
    """Where a request stands."""

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    ANSWERED = "answered"
    RETURNED = "returned"
    OVER_BUDGET = "over_budget"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class LaneRequest:
    """One judgement that may take its time; its body is built again from the run when it is sent."""

    id: str  # the judgement's id
    run_id: int
    batch_id: str
    team: str
    slot: Slot
    size: int  # bytes of the body, about


@dataclass(frozen=True)
class LaneEntry:
    """A request and what became of it."""

    state: RequestState
    answer: JudgeAnswer | None = None
    error: str | None = None


@dataclass(frozen=True)
class Shipment:
    """One provider message batch, or the intention of one."""

    id: str
    created_at: float  # by the database's clock
    request_count: int
    provider_id: str | None = None
    lease_until: float = 0.0  # the end of the lease it was given with; whoever takes it over sets another


@dataclass(frozen=True)
class LaneSettings:
    """When a shipment leaves, and how often we ask for it."""

    max_requests: int = 10_000
    max_bytes: int = 100 * 2**20  # the provider takes 256 MB
    max_age_seconds: float = 300.0  # the oldest request waits no longer for company
    poll_seconds: float = 30.0
    lease_seconds: float = 300.0  # longer than the request that sends a shipment may take
    clock_skew_seconds: float = 300.0  # between our database and the provider
    auto_runs: int = 1_000  # a batch with this many runs is large


class LaneStore(Protocol):
    """The lane in the database; every method is one transaction."""

    def offer(self, request: LaneRequest) -> LaneEntry:
        """Put a request in the lane, or find what became of it; a verdict about another batch does not count."""

    def forget_answers(self, batch_id: str) -> None:
        """Drop the answers of a batch's runs that ended as judge_error: read again, they would fail again."""

    def pack(self, settings: LaneSettings) -> tuple[Shipment, list[LaneRequest]] | None:
        """Move waiting requests into a new shipment that this caller leases, if it is full or old enough.

        Requests of cancelled batches are dropped: a judge may have offered one after the cancel.
        None while another shipment is being sent: two that are stranded at once could be mistaken for each other.
        """

    def unpack(self, shipment_id: str, request_ids: Iterable[str], state: RequestState, error: str | None) -> None:
        """Take requests out of a shipment that was not sent yet."""

    def renew(self, shipment: Shipment, lease_seconds: float) -> Shipment | None:
        """Keep an unsent shipment for longer; None when its lease ran out and somebody else took it."""

    def mark_sent(self, shipment: Shipment, provider_id: str, is_found: bool = False) -> bool:
        """The provider has it, under this id; False when somebody else took it and knows of another id or none.

        `is_found` says that the id is taken on trust, because the provider's batch has the right size.
        """

    def mark_lost(self, shipment_id: str) -> None:
        """The provider never got it: its requests wait again."""

    def reject_provider(self, shipment_id: str) -> None:
        """The provider's batch is not this shipment's: remember that, and look for the right one again."""

    def claim_stranded(self, lease_seconds: float) -> list[Shipment]:
        """Shipments whose sender is gone; leased to this caller."""

    def claim_due(self, settings: LaneSettings) -> list[Shipment]:
        """Sent shipments that were not looked at for a while; leased to this caller."""

    def taken_providers(self, shipment_id: str) -> set[str]:
        """Ids of provider batches that cannot be this shipment's: another has them, or it was tried."""

    def requests_of(self, shipment_id: str) -> dict[str, LaneRequest]:
        """All requests of a shipment, by id."""

    def save_answer(self, request_id: str, answer: JudgeAnswer) -> bool:
        """Keep an answer and write its call into the ledger; False when the request was settled before."""

    def save_return(self, request_id: str, error: str) -> bool:
        """The request goes to the realtime lane; False when it was settled before."""

    def mark_collected(self, shipment_id: str) -> None:
        """Nothing more comes from it."""

    def cancel(self, batch_id: str) -> None:
        """Requests of a batch are not wanted any more."""

    def claim_unwanted(self, settings: LaneSettings) -> list[Shipment]:
        """Sent shipments all of whose requests are cancelled or of cancelled batches; given again after a while.

        Not those that were found: cancelling is not to be tried on what may be somebody else's.
        """

    def mark_cancelled(self, shipment_id: str) -> None:
        """The provider was asked to stop."""
