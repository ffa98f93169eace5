"""eval_metadata.json: what a run directory says about the case it ran."""

from schemas.base import CaseId, Node
from schemas.suite import Statement


class EvalMetadata(Node):
    """One case as the run saw it."""

    eval_id: CaseId | None = None
    eval_name: str | None = None
    prompt: str | None = None
    assertions: tuple[Statement, ...] | None = None
    input_files: tuple[str, ...] | None = None
    skill_path: str | None = None
    output_dir: str | None = None
    inputs_dir: str | None = None
    outputs_dir: str | None = None
    no_skill: bool | None = None
    original_skill_path: str | None = None
