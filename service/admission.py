"""Which waiting run starts next: fair over teams, then priorities, then batches; pure, the store does the rest."""

from dataclasses import replace

from service.storage.dispatch import Contender


def choose(contenders: list[Contender], free: int) -> list[str]:
    """A batch id for every free slot.

    Each slot goes to the team with the fewest open runs for its weight, inside it to the batch of the highest
    priority, then to the one with the fewest open runs. Caps of teams and batches are kept.
    """
    order: list[str] = []
    waiting = {contender.batch_id: contender for contender in contenders}
    while len(order) < free:
        allowed = [contender for contender in waiting.values() if _has_room(contender)]
        if not allowed:
            break
        best = min(allowed, key=_claim_to_next_slot)
        order.append(best.batch_id)
        _count_opened(waiting, best)
    return order


def _claim_to_next_slot(contender: Contender) -> tuple[float, str, int, int, str]:
    share = contender.team_open / contender.weight if contender.weight > 0 else float("inf")
    return (share, contender.team_id, -contender.priority, contender.batch_open, contender.batch_id)


def _has_room(contender: Contender) -> bool:
    batch_full = contender.batch_max_open is not None and contender.batch_open >= contender.batch_max_open
    team_full = contender.team_max_open is not None and contender.team_open >= contender.team_max_open
    return not batch_full and not team_full


def _count_opened(waiting: dict[str, Contender], opened: Contender) -> None:
    for batch_id, contender in waiting.items():
        if contender.team_id == opened.team_id:
            more_in_batch = int(batch_id == opened.batch_id)
            waiting[batch_id] = replace(
                contender, team_open=contender.team_open + 1, batch_open=contender.batch_open + more_in_batch
            )
