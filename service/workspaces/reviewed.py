"""feedback.json of a workspace: what people said about its runs, by the names its viewer gives them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from service.errors import BadInput
from service.storage.rows import GivenReview
from service.workspaces.reading import Workspace
from service.workspaces.run_facts import kept_text

FILE = "feedback.json"
SOMEBODY = "imported"  # the viewer writes no author
_MOST_AUTHOR_CHARS = 200


@dataclass(frozen=True, slots=True)
class Said:
    """One entry of feedback.json."""

    run_id: str
    review: GivenReview


def reviews_in(workspace: Workspace) -> list[Said]:
    """Everything that was said; a file that cannot be used is a remark of the workspace."""
    try:
        data = workspace.folder.bytes_of(workspace.layout.root / FILE)
        found = json.loads(data) if data else {"reviews": []}
    except (BadInput, ValueError, RecursionError) as error:
        workspace.remark(f"{FILE} is ignored: {str(error).splitlines()[0]}")
        return []
    entries = found.get("reviews") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        workspace.remark(f'{FILE} is ignored: it has no list "reviews"')
        return []
    return list(_said(entries))


def names_of(folder: str, root: str, label: str, configuration: str, number: int) -> set[str]:
    """What feedback.json may call a run: its path with dashes, as the viewer does, or by case, arm and number."""
    paths = {folder, folder.removeprefix(f"{root}/")}
    return {path.replace("/", "-") for path in paths} | {f"eval-{label}-{configuration}-run-{number}"}


def _said(entries: list[JsonValue]) -> Iterator[Said]:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        run_id, feedback, author = entry.get("run_id"), entry.get("feedback"), entry.get("author")
        # The viewer sends an empty text for every run that nobody said anything about.
        if isinstance(run_id, str) and isinstance(feedback, str) and feedback.strip():
            who = author if isinstance(author, str) and author.strip() else SOMEBODY
            yield Said(run_id, GivenReview(kept_text(who)[:_MOST_AUTHOR_CHARS], kept_text(feedback), _moment(entry)))


def _moment(entry: dict[str, JsonValue]) -> float | None:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
