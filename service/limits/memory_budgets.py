"""The budgets of one process: the twin of the script in Redis, for the embedded default."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.limits.budgets import (
    MICRO,
    Account,
    Ledger,
    Reservation,
    Spend,
    empty_ledger,
    over_budget,
    reserved_away,
)


@dataclass
class Book:
    """One account's figures."""

    micros: int
    tokens: int
    reserved: dict[str, tuple[float, Spend]] = field(default_factory=dict)  # id -> until when, what

    def expire(self, now: float) -> None:
        """Reservations nobody corrected count as spent."""
        for id_ in [id_ for id_, (until, _) in self.reserved.items() if until <= now]:
            self.close(id_, self.reserved[id_][1])

    def close(self, id_: str, used: Spend) -> None:
        """Replace a reservation by what was used; one that is not there changes nothing."""
        if self.reserved.pop(id_, None) is not None:
            self.micros += used.micros
            self.tokens += used.tokens

    def with_reserved(self) -> tuple[int, int]:
        """Spent and reserved together."""
        spends = [spend for _, spend in self.reserved.values()]
        return self.micros + sum(s.micros for s in spends), self.tokens + sum(s.tokens for s in spends)


class MemoryBudgets:
    """Accounts shared by the threads of this process only."""

    def __init__(self, ledger: Ledger = empty_ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._clock = clock
        self._books: dict[str, Book] = {}
        self._lock = threading.Lock()

    def reserve(self, reservation: Reservation, spend: Spend) -> None:
        with self._lock:
            books = [(account, self._book(account.name)) for account in reservation.accounts]
            if any(reservation.id in book.reserved for _, book in books):
                return
            check(books, spend)
            for _, book in books:
                book.reserved[reservation.id] = (self._clock() + reservation.held_seconds, spend)

    def correct(self, reservation: Reservation, used: Spend) -> None:
        with self._lock:
            for account in reservation.accounts:
                self._book(account.name).close(reservation.id, used)

    def spent(self, account: Account) -> Spend:
        with self._lock:
            book = self._book(account.name)
            return Spend(book.micros / MICRO, book.tokens)

    def _book(self, name: str) -> Book:
        if name not in self._books:
            before = self._ledger(name)
            self._books[name] = Book(before.micros, before.tokens)
        self._books[name].expire(self._clock())
        return self._books[name]


def check(books: list[tuple[Account, Book]], spend: Spend) -> None:
    """Raise for the first account that has too little left, else for the first whose rest is reserved."""
    for account, book in books:
        if account.is_exceeded_by(book.micros + spend.micros, book.tokens + spend.tokens):
            raise over_budget(account, Spend(book.micros / MICRO, book.tokens), spend)
    for account, book in books:
        micros, tokens = book.with_reserved()
        if account.is_exceeded_by(micros + spend.micros, tokens + spend.tokens):
            raise reserved_away(account)
