"""The half-price lane in the database."""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Engine, Row, and_, delete, exists, func, insert, not_, select, update

from schemas.states import Outcome
from service.judging.judgement import JudgeAnswer, TokensUsed
from service.judging.lane import LaneEntry, LaneRequest, LaneSettings, RequestState, Shipment
from service.judging.request import Slot
from service.limits.port import Purpose
from service.storage.clock import Now
from service.storage.rows import new_id
from service.storage.store import database_errors
from service.storage.tables import batches, lane_requests, model_calls, runs, shipments
from service.storage.teams import insert_or_ignore

UNSETTLED = (RequestState.SENDING, RequestState.SENT, RequestState.CANCELLED)


_CANCELLED_BATCHES = select(batches.c.id).where(batches.c.cancelled_at.is_not(None))


class LaneRows:
    """The LaneStore of an installation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def offer(self, request: LaneRequest) -> LaneEntry:
        row = {
            **{name: getattr(request, name) for name in ("id", "run_id", "batch_id", "team", "size")},
            "model": request.slot.model,
            "seat": request.slot.number,
            "repeat": request.slot.repeat,
            "state": RequestState.WAITING,
            "offered_at": Now(),
        }
        with database_errors(), self._engine.begin() as connection:
            connection.execute(insert_or_ignore(connection, lane_requests).values(**row))
            found = connection.execute(select(lane_requests).where(lane_requests.c.id == request.id)).one()
            if changes := _taken_up(connection, found, request):
                same = and_(lane_requests.c.id == found.id, lane_requests.c.state == found.state)
                changed = update(lane_requests).where(same).values(**changes).returning(lane_requests)
                found = connection.execute(changed).one_or_none() or found
            elif found.state == RequestState.OVER_BUDGET:
                # Said once to the run it is about: when that run is retried, the budget is looked at again.
                connection.execute(delete(lane_requests).where(lane_requests.c.id == found.id))
        return LaneEntry(RequestState(found.state), _answer(found.answer), found.error)

    def forget_answers(self, batch_id: str) -> None:
        failed = and_(runs.c.batch_id == batch_id, runs.c.outcome == Outcome.JUDGE_ERROR)
        of_failed = lane_requests.c.run_id.in_(select(runs.c.id).where(failed))
        # While a shipment is collected, a request less would make the provider's batch look like somebody else's.
        collecting = exists().where(shipments.c.id == lane_requests.c.shipment_id, shipments.c.state == "sent")
        unusable = and_(of_failed, lane_requests.c.state == RequestState.ANSWERED, not_(collecting))
        with database_errors(), self._engine.begin() as connection:
            connection.execute(delete(lane_requests).where(unusable))

    def pack(self, settings: LaneSettings) -> tuple[Shipment, list[LaneRequest]] | None:
        with database_errors(), self._engine.begin() as connection:
            _one_packer(connection)
            _drop_cancelled(connection)
            if connection.execute(select(shipments.c.id).where(shipments.c.state == "sending")).first():
                return None
            chosen = _fitting(_waiting(connection, settings.max_requests), settings)
            if not chosen or not _is_due(connection, chosen, settings):
                return None
            shipment_id = new_id()
            lease = {"lease_until": Now() + settings.lease_seconds, "created_at": Now(), "rejected": []}
            connection.execute(insert(shipments).values(id=shipment_id, state="sending", **lease))
            ids = [row.id for row in chosen]
            _move(connection, ids, state=RequestState.SENDING, shipment_id=shipment_id)
            created = connection.execute(select(shipments).where(shipments.c.id == shipment_id)).one()
            return _shipment(connection, created), [_request(row) for row in chosen]

    def unpack(self, shipment_id: str, request_ids: Iterable[str], state: RequestState, error: str | None) -> None:
        with database_errors(), self._engine.begin() as connection:
            mine = and_(lane_requests.c.shipment_id == shipment_id, lane_requests.c.state == RequestState.SENDING)
            _move(connection, list(request_ids), mine, state=state, error=error, shipment_id=None)

    def renew(self, shipment: Shipment, lease_seconds: float) -> Shipment | None:
        longer = update(shipments).where(_held(shipment)).values(lease_until=Now() + lease_seconds)
        with database_errors(), self._engine.begin() as connection:
            row = connection.execute(longer.returning(shipments.c.lease_until)).one_or_none()
        return replace(shipment, lease_until=row.lease_until) if row else None

    def mark_sent(self, shipment: Shipment, provider_id: str, is_found: bool = False) -> bool:
        sent = {"state": "sent", "provider_id": provider_id, "polled_at": Now(), "lease_until": 0.0}
        sent["is_found"] = int(is_found)
        known = and_(shipments.c.id == shipment.id, shipments.c.provider_id == provider_id)
        with database_errors(), self._engine.begin() as connection:
            if connection.execute(update(shipments).where(_held(shipment)).values(**sent)).rowcount == 0:
                return connection.execute(select(shipments.c.id).where(known)).first() is not None
            _all_of(connection, shipment.id, RequestState.SENDING, state=RequestState.SENT)
        return True

    def mark_lost(self, shipment_id: str) -> None:
        with database_errors(), self._engine.begin() as connection:
            _set(connection, shipment_id, "sending", state="lost")
            _all_of(connection, shipment_id, RequestState.SENDING, state=RequestState.WAITING, shipment_id=None)

    def reject_provider(self, shipment_id: str) -> None:
        with database_errors(), self._engine.begin() as connection:
            row = connection.execute(select(shipments).where(shipments.c.id == shipment_id)).one()
            rejected = [*row.rejected, row.provider_id]
            # Its lease is over at once: the next round looks for the right one.
            changes = {"state": "sending", "provider_id": None, "rejected": rejected, "lease_until": 0.0}
            _set(connection, shipment_id, "sent", **changes)
            _all_of(connection, shipment_id, RequestState.SENT, state=RequestState.SENDING)

    def claim_stranded(self, lease_seconds: float) -> list[Shipment]:
        stranded = and_(shipments.c.state == "sending", shipments.c.lease_until < Now())
        return self._claim(stranded, lease_until=Now() + lease_seconds)

    def claim_due(self, settings: LaneSettings) -> list[Shipment]:
        due = and_(shipments.c.state == "sent", shipments.c.polled_at <= Now() - settings.poll_seconds)
        return self._claim(due, polled_at=Now())

    def claim_unwanted(self, settings: LaneSettings) -> list[Shipment]:
        travelling = and_(lane_requests.c.shipment_id == shipments.c.id, lane_requests.c.state == RequestState.SENT)
        wanted = exists().where(travelling, lane_requests.c.batch_id.not_in(_CANCELLED_BATCHES))
        ours = and_(shipments.c.state == "sent", shipments.c.is_cancelled == 0, shipments.c.is_found == 0)
        unwanted = and_(ours, shipments.c.lease_until <= Now(), not_(wanted))
        return self._claim(unwanted, lease_until=Now() + settings.poll_seconds)

    def mark_cancelled(self, shipment_id: str) -> None:
        with database_errors(), self._engine.begin() as connection:
            _set(connection, shipment_id, "sent", is_cancelled=1)

    def _claim(self, which: Any, **changes: Any) -> list[Shipment]:
        """Mark rows and give them: who comes second finds them marked."""
        with database_errors(), self._engine.begin() as connection:
            claimed = connection.execute(update(shipments).where(which).values(**changes).returning(shipments)).all()
            return [_shipment(connection, row) for row in claimed]

    def taken_providers(self, shipment_id: str) -> set[str]:
        query = select(shipments.c.id, shipments.c.provider_id, shipments.c.rejected)
        with database_errors(), self._engine.begin() as connection:
            rows = connection.execute(
                query.where(shipments.c.provider_id.is_not(None) | (shipments.c.id == shipment_id))
            )
            found = rows.all()
        taken = {row.provider_id for row in found if row.provider_id is not None}
        return taken | {one for row in found if row.id == shipment_id for one in row.rejected}

    def requests_of(self, shipment_id: str) -> dict[str, LaneRequest]:
        query = select(lane_requests).where(lane_requests.c.shipment_id == shipment_id)
        with database_errors(), self._engine.begin() as connection:
            return {row.id: _request(row) for row in connection.execute(query)}

    def save_answer(self, request_id: str, answer: JudgeAnswer) -> bool:
        kept = json.dumps({**asdict(answer), "tokens": answer.tokens.model_dump()})
        with database_errors(), self._engine.begin() as connection:
            row = _settle(connection, request_id, state=RequestState.ANSWERED, answer=kept)
            if row is None:
                return False
            # In one transaction with the answer: whoever dies here, the call is in the ledger exactly once.
            connection.execute(insert(model_calls).values(**_ledger_row(row, answer)))
        return True

    def save_return(self, request_id: str, error: str) -> bool:
        with database_errors(), self._engine.begin() as connection:
            return _settle(connection, request_id, state=RequestState.RETURNED, error=error) is not None

    def mark_collected(self, shipment_id: str) -> None:
        with database_errors(), self._engine.begin() as connection:
            _set(connection, shipment_id, "sent", state="collected")

    def has_work(self) -> bool:
        """Whether anything waits to be sent, or is on its way."""
        waiting = exists().where(lane_requests.c.state == RequestState.WAITING)
        under_way = exists().where(shipments.c.state.in_(("sending", "sent")))
        with database_errors(), self._engine.begin() as connection:
            return bool(connection.execute(select(waiting | under_way)).scalar_one())

    def cancel(self, batch_id: str) -> None:
        live = (RequestState.WAITING, RequestState.SENT)
        mine = and_(lane_requests.c.batch_id == batch_id, lane_requests.c.state.in_(live))
        with database_errors(), self._engine.begin() as connection:
            connection.execute(update(lane_requests).where(mine).values(state=RequestState.CANCELLED))


def _taken_up(connection: Connection, row: Row[Any], request: LaneRequest) -> dict[str, Any]:
    """What changes in a request that was there before, when this run asks for it; nothing as a rule."""
    owner = {"run_id": request.run_id, "batch_id": request.batch_id, "team": request.team}
    is_mine = row.run_id == request.run_id
    if row.state == RequestState.OVER_BUDGET and not is_mine:
        return {**owner, "state": RequestState.WAITING, "error": None, "offered_at": Now()}
    if row.state == RequestState.CANCELLED and not _is_cancelled(connection, request.batch_id):
        return {**owner, **_where_it_travels(connection, row)}
    # By its owner a request is cancelled and forgotten. While it travels it stays with whoever reserved money for it.
    is_ownerless = row.state == RequestState.ANSWERED or _is_cancelled(connection, row.batch_id)
    return owner if not is_mine and is_ownerless and not _is_cancelled(connection, request.batch_id) else {}


def _where_it_travels(connection: Connection, row: Row[Any]) -> dict[str, Any]:
    """The state of a request that is wanted again: its shipment may be under way with it."""
    query = select(shipments.c.state).where(shipments.c.id == row.shipment_id)
    states = {"sending": RequestState.SENDING, "sent": RequestState.SENT}
    state = states.get(connection.execute(query).scalar_one_or_none() or "")
    return {"state": state} if state else {"state": RequestState.WAITING, "shipment_id": None, "offered_at": Now()}


def _is_cancelled(connection: Connection, batch_id: str) -> bool:
    cancelled = and_(batches.c.id == batch_id, batches.c.cancelled_at.is_not(None))
    return connection.execute(select(batches.c.id).where(cancelled)).first() is not None


def _settle(connection: Connection, request_id: str, **changes: Any) -> Row[Any] | None:
    """The request, settled now; None when it was settled before."""
    open_ = and_(lane_requests.c.id == request_id, lane_requests.c.state.in_(UNSETTLED))
    settled = update(lane_requests).where(open_).values(**changes).returning(lane_requests)
    return connection.execute(settled).one_or_none()


def _ledger_row(request: Row[Any], answer: JudgeAnswer) -> dict[str, Any]:
    """The call as the ledger keeps it; how long it took says nothing about the model."""
    return {
        "team_id": request.team,
        "batch_id": request.batch_id,
        "run_id": request.run_id,
        "purpose": Purpose.JUDGE,
        "model": request.model,
        "answered_by": answer.answered_by,
        "input_tokens": answer.tokens.input,
        "output_tokens": answer.tokens.output,
        "cache_read_tokens": answer.tokens.cache_read,
        "cache_write_tokens": answer.tokens.cache_write,
        "cost_usd": answer.cost_usd,
        "seconds": answer.seconds,
        "simulated": int(answer.simulated),
        "attempts": 1,
        "lane": "batch",
        "created_at": Now(),
    }


def _one_packer(connection: Connection) -> None:
    """Two that pack at once would both see no shipment being sent. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(0x6A756467)))


def _drop_cancelled(connection: Connection) -> None:
    waiting = and_(lane_requests.c.state == RequestState.WAITING, lane_requests.c.batch_id.in_(_CANCELLED_BATCHES))
    connection.execute(update(lane_requests).where(waiting).values(state=RequestState.CANCELLED))


def _waiting(connection: Connection, most: int) -> list[Row[Any]]:
    query = select(lane_requests).where(lane_requests.c.state == RequestState.WAITING)
    return list(connection.execute(query.order_by(lane_requests.c.offered_at, lane_requests.c.id).limit(most)))


def _fitting(rows: list[Row[Any]], settings: LaneSettings) -> list[Row[Any]]:
    """As many as fit, the oldest first; one that is too large for any shipment goes alone."""
    size = 0
    chosen: list[Row[Any]] = []
    for row in rows:
        size += row.size
        if chosen and size > settings.max_bytes:
            break
        chosen.append(row)
    return chosen


def _is_due(connection: Connection, chosen: list[Row[Any]], settings: LaneSettings) -> bool:
    """Whether a shipment is full, or its oldest request has waited long enough."""
    is_full = len(chosen) >= settings.max_requests or sum(row.size for row in chosen) >= settings.max_bytes
    waited: float = connection.execute(select(Now() - chosen[0].offered_at)).scalar_one()
    return is_full or waited >= settings.max_age_seconds


def _move(connection: Connection, ids: list[str], *where: Any, **changes: Any) -> None:
    for start in range(0, len(ids), 500):
        some = lane_requests.c.id.in_(ids[start : start + 500])
        connection.execute(update(lane_requests).where(some, *where).values(**changes))


def _held(shipment: Shipment) -> Any:
    """The unsent shipment, if nobody took it since: the end of a lease is its fence."""
    same = and_(shipments.c.id == shipment.id, shipments.c.lease_until == shipment.lease_until)
    return and_(same, shipments.c.state == "sending")


def _set(connection: Connection, shipment_id: str, state_before: str, **changes: Any) -> None:
    which = and_(shipments.c.id == shipment_id, shipments.c.state == state_before)
    connection.execute(update(shipments).where(which).values(**changes))


def _all_of(connection: Connection, shipment: str, state_before: RequestState, **changes: Any) -> None:
    which = and_(lane_requests.c.shipment_id == shipment, lane_requests.c.state == state_before)
    connection.execute(update(lane_requests).where(which).values(**changes))


def _shipment(connection: Connection, row: Row[Any]) -> Shipment:
    query = select(func.count()).select_from(lane_requests).where(lane_requests.c.shipment_id == row.id)
    count: int = connection.execute(query).scalar_one()
    return Shipment(row.id, row.created_at, count, row.provider_id, row.lease_until)


def _request(row: Row[Any]) -> LaneRequest:
    slot = Slot(row.model, row.seat, row.repeat)
    return LaneRequest(row.id, row.run_id, row.batch_id, row.team, slot, row.size)


def _answer(text: str | None) -> JudgeAnswer | None:
    if text is None:
        return None
    kept = json.loads(text)
    return JudgeAnswer(**{**kept, "tokens": TokensUsed.model_validate(kept["tokens"])})
