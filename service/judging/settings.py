"""What can be set about judging."""

from dataclasses import dataclass

from service.errors import BadInput

MAX_PANEL = 9


@dataclass(frozen=True)
class JudgeSettings:
    """How a batch's runs are judged."""

    models: tuple[str, ...]  # one is the rule; more are a panel
    max_output_tokens: int = 8_000  # grows with the number of questions
    text_budget_chars: int = 240_000  # all text outputs together
    transcript_budget_chars: int = 120_000
    native_budget_bytes: int = 8 * 2**20  # all images and PDFs together
    max_native: int = 20
    effort: str | None = None  # low, medium, high, xhigh, max; None leaves it to the model
    rejudge_share: float = 0.1  # of the judgements, made once more to see how steady the judge is
    word_target: int = 500  # a skill longer than this fails token_efficiency

    def __post_init__(self) -> None:
        if not 1 <= len(self.models) <= MAX_PANEL:
            raise BadInput(f"a panel has 1 to {MAX_PANEL} judge models, not {len(self.models)}")
        if not 0.0 <= self.rejudge_share <= 1.0:
            raise BadInput(f"rejudge_share is a share from 0 to 1, not {self.rejudge_share:g}")
