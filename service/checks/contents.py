"""Checks on what files say."""

from collections.abc import Iterator

from schemas.checks import FileContains, FileNotContains
from service.checks.evidence import labels
from service.checks.files import no_files
from service.checks.searching import Text, banned_names, excuses, find, find_banned, found_banned, wanted
from service.checks.verdict import Given, Undecided, Verdict
from service.sandbox.reader import CannotRead, shown

MAX_CHARS = 200_000_000  # looked through by one check
_BATCH_CHARS = 1_000_000  # given to the engine at once


def file_contains(fields: FileContains, given: Given) -> Verdict:
    """One matching file holds the text; a file that cannot be read leaves it open unless another one does."""
    found = given.outputs.matching(fields.pattern)
    if not found:
        return Verdict(False, no_files(fields.pattern))
    texts = _Texts(found, given)
    for batch in texts.batches():
        if evidence := find(fields, batch, given.engine):
            return Verdict(True, evidence)
    texts.require_complete()
    return Verdict(False, f"{wanted(fields)} in any matching file")


def file_not_contains(fields: FileNotContains, given: Given) -> Verdict:
    """No matching file has a line with the text; without files that is true of nothing."""
    found = given.outputs.matching(fields.pattern)
    if not found:
        return Verdict(True, f"{no_files(fields.pattern)} (vacuously true)")
    hits, excused, comments = [], 0, 0
    texts = _Texts(found, given)
    for batch in texts.batches():
        banned = find_banned(fields, fields.except_context or [], batch, given.engine, skip_comments=True)
        hits += banned.hits
        excused, comments = excused + banned.excused, comments + banned.comments
    if hits:
        return Verdict(False, found_banned(hits))
    texts.require_complete()
    evidence = f"No matches for '{banned_names(fields)}' across {len(found)} file(s)"
    return Verdict(True, evidence + excuses(excused, comments))


class _Texts:
    """The texts of some files, a megabyte at a time; those that cannot be read are remembered."""

    def __init__(self, paths: list[str], given: Given) -> None:
        self._paths = paths
        self._given = given
        self._labels = labels(given.outputs.listing.files)
        self._first_problem: CannotRead | None = None

    def batches(self) -> Iterator[list[Text]]:
        """The texts in order; raises Undecided when they are too many or the time is up."""
        total = size = 0
        batch: list[Text] = []
        for path in self._paths:
            try:
                content = self._given.outputs.read_text(path)
            except CannotRead as error:
                self._first_problem = self._first_problem or error
                continue
            total += len(content)
            if total > MAX_CHARS:
                raise Undecided(f"the matching files have more than {MAX_CHARS} characters; narrow the pattern")
            if batch and size + len(content) > _BATCH_CHARS:
                yield self._in_time(batch)
                batch, size = [], 0
            size += len(content)
            batch.append(Text(self._labels[path], shown(path), content))
        yield self._in_time(batch)

    def _in_time(self, batch: list[Text]) -> list[Text]:
        self._given.seconds_left()
        return batch

    def require_complete(self) -> None:
        """Nothing was found; that says something only if everything was read."""
        if self._first_problem:
            raise Undecided(str(self._first_problem))
