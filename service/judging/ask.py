"""The model behind `ask`: the one place where the judge's requests become calls."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from service.judging.judgement import JudgeAnswer, TokensUsed
from service.judging.request import JudgeRequest
from service.limits.port import Purpose
from service.models.port import Answer, Call, Models


@dataclass(frozen=True)
class Asker:
    """For whom the judge asks."""

    team: str = "default"
    batch_id: str | None = None
    run_id: int | None = None
    label: str = ""  # tells the simulator repeated runs apart
    timeout_seconds: float = 300.0
    is_cancelled: Callable[[], bool] = field(default=lambda: False)


def ask_with(models: Models, asker: Asker) -> Callable[[JudgeRequest], JudgeAnswer]:
    """An `ask` for one run."""
    return functools.partial(ask, models, asker)


def ask(models: Models, asker: Asker, request: JudgeRequest) -> JudgeAnswer:
    """Ask the model now; raises what the model client raises."""
    return judge_answer(models.complete(judge_call(asker, request)))


def judge_call(asker: Asker, request: JudgeRequest) -> Call:
    """The call that puts a request to a model."""
    return Call(
        params=request.params(),
        purpose=Purpose.JUDGE,
        team=asker.team,
        batch_id=asker.batch_id,
        run_id=asker.run_id,
        # A repeated judgement of the same run is another draw.
        label=f"{asker.label}#again" if request.slot.repeat and asker.label else asker.label,
        input_tokens=request.estimated_input_tokens(),
        timeout_seconds=asker.timeout_seconds,
        is_cancelled=asker.is_cancelled,
    )


def judge_answer(answer: Answer) -> JudgeAnswer:
    """A model's answer in the judge's words."""
    tokens = TokensUsed(
        input=answer.tokens.input,
        output=answer.tokens.output,
        cache_read=answer.tokens.cache_read,
        cache_write=answer.tokens.cache_write,
    )
    return JudgeAnswer(
        answer.text, answer.stop_reason, tokens, answer.seconds, answer.cost_usd, answer.model, answer.simulated
    )
