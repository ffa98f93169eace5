"""What `assay grade`, `import` and `regrade` share: a batch of given runs, started and told about."""

import sys
from pathlib import Path
from typing import Any

from cli.aggregate import printable
from cli.gating import Asked
from cli.run import Wanted
from schemas.findings import Level
from service.aggregation.gates import Gates

MOST_FINDINGS = 20


def started(parts: Any, accepted: Any, what: str) -> str:
    """Let an accepted batch of given runs go on; says what was found. Gives its id."""
    found = [finding for finding in accepted.findings if finding.level is not Level.NOTE]
    for finding in found[:MOST_FINDINGS]:
        print(printable(f"{finding.level}  {finding.path}  {finding.message}"), file=sys.stderr)
    if len(found) > MOST_FINDINGS:
        print(f"... and {len(found) - MOST_FINDINGS} more findings", file=sys.stderr)
    print(f"batch {accepted.batch_id}: {accepted.runs} given runs of {what}", file=sys.stderr)
    return str(parts.desk.start_given(accepted).batch_id)


def wanted(folder: Path, as_json: bool, asked: Asked = Asked(Gates())) -> Wanted:
    """What is to be told of a batch that was not submitted by `assay run`."""
    return Wanted(folder, None, {}, None, False, as_json, asked)
