"""The runner `messages`: an agent loop on the Messages API, with all its tools in the sandbox."""

import time
from dataclasses import dataclass, field
from typing import Any

from schemas.metrics import Metrics
from schemas.states import Outcome
from service.errors import StageFailed
from service.limits.port import Purpose
from service.models.port import Answer, Call, Models, Tokens
from service.runners import arms, record
from service.runners.agent_prompt import GO_ON, system_prompt, task_message
from service.runners.endings import refuse_bad_end
from service.runners.notes import take_notes
from service.runners.port import Assignment, Execution, Usage
from service.runners.skill_watch import SkillWatch, staged_skill
from service.runners.toolbox import NAMES, TOOLS, Toolbox
from service.runners.transcript import Transcript, shortened
from service.sandbox.port import Limits, Sandbox

_CACHE = {"type": "ephemeral"}


@dataclass(frozen=True)
class AgentLimits:
    """When an agent has done enough."""

    turns: int = 80  # answers of the model
    output_tokens: int = 16_000  # of one answer
    total_tokens: int = 4_000_000  # of the whole run, cache reads included
    cut_answers: int = 3  # answers in a row that may end at the output limit
    tool_output_chars: int = 40_000  # of one tool result, as the model sees it
    sandbox: Limits = field(default_factory=Limits)


class MessagesRunner:
    """Executes a case with a model and six tools."""

    name = "messages"

    def __init__(self, models: Models, sandbox: Sandbox, limits: AgentLimits | None = None) -> None:
        self._models = models
        self._sandbox = sandbox
        self._limits = limits or AgentLimits()

    def run(self, assignment: Assignment) -> Execution:
        if not assignment.model:
            raise StageFailed(Outcome.EXECUTOR_ERROR, "the messages runner needs a model; set executor_model")
        work = _Work(assignment, self._models, self._sandbox, self._limits)
        try:
            work.until_done()
        except StageFailed as failure:
            work.transcript.issue(str(failure))
            raise record.failed(failure, self.name, assignment, work.execution()) from failure
        return work.execution()


class _Work:
    """One run under way."""

    def __init__(self, assignment: Assignment, models: Models, sandbox: Sandbox, limits: AgentLimits) -> None:
        self._assignment = assignment
        self._models = models
        self._limits = limits
        self._sandbox_tier = sandbox.tier
        self._started = time.monotonic()
        self._deadline = self._started + assignment.timeout_seconds
        self._tools = Toolbox(sandbox, assignment, limits.sandbox)
        skill = assignment.skill
        staged = staged_skill(assignment, self._tools.skill_directory, self._tools.places)
        self._watch = SkillWatch(staged, assignment.canary, assignment.other_canary)
        self.transcript = Transcript(assignment.prompt, assignment.inputs, skill.name if skill else None)
        self._system = system_prompt(self._tools.working_directory, self._tools.skill_directory, skill)
        task = {"type": "text", "text": task_message(assignment.prompt, assignment.inputs)}
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": [task]}]
        self._answers: list[Answer] = []
        self._counts = dict.fromkeys(NAMES, 0)
        self._errors = 0
        self._cut = 0

    def until_done(self) -> None:
        """Let the model work until it stops or must be stopped."""
        while True:
            self._check_limits()
            answer = self._ask()
            self._note(answer)
            if not self._go_on(answer):
                return

    def _check_limits(self) -> None:
        if self._assignment.is_cancelled():
            raise StageFailed(Outcome.CANCELLED, "the run was stopped")
        if time.monotonic() >= self._deadline:
            raise self._too_late()
        if len(self._answers) >= self._limits.turns:
            raise StageFailed(Outcome.EXECUTOR_ERROR, f"the agent was not done after {self._limits.turns} turns")
        if self._tokens.total > self._limits.total_tokens:
            words = f"the agent used more than {self._limits.total_tokens} tokens and was not done"
            raise StageFailed(Outcome.EXECUTOR_ERROR, words)

    def _too_late(self) -> StageFailed:
        return StageFailed(Outcome.TIMEOUT, f"the agent was not done after {self._assignment.timeout_seconds:.0f} s")

    def _ask(self) -> Answer:
        run = self._assignment
        call = Call(
            params=self._params(),
            purpose=Purpose.EXECUTE,
            team=run.team,
            batch_id=run.batch_id,
            run_id=run.run_id,
            label=run.label,
            timeout_seconds=max(0.01, self._deadline - time.monotonic()),
            is_cancelled=run.is_cancelled,
        )
        try:
            return self._models.stream(call)
        except StageFailed as failure:
            raise self._too_late() if failure.outcome is Outcome.TIMEOUT else failure from failure

    def _params(self) -> dict[str, Any]:
        return {
            "model": self._assignment.model,
            "max_tokens": self._limits.output_tokens,
            "system": [{"type": "text", "text": self._system, "cache_control": _CACHE}],
            "tools": TOOLS,
            "messages": [*self._messages[:-1], _marked(self._messages[-1])],
        }

    def _note(self, answer: Answer) -> None:
        self._answers.append(answer)
        self.transcript.is_simulated = self.transcript.is_simulated or answer.simulated
        usage = {"input": answer.tokens.input, "output": answer.tokens.output}
        usage |= {"cache_read": answer.tokens.cache_read, "cache_write": answer.tokens.cache_write}
        self.transcript.turn(answer.content, stop_reason=answer.stop_reason, tokens=usage, model=answer.model)

    def _go_on(self, answer: Answer) -> bool:
        """Do what the model's stop asks for; False when it is done."""
        reason = answer.stop_reason
        self._cut = self._cut + 1 if reason == "max_tokens" else 0
        if reason == "tool_use":
            self._use_tools(answer)
            return True
        if reason == "pause_turn":
            self._continue(list(answer.content))
            return True
        if reason == "max_tokens":
            self._after_a_cut(answer)
            return True
        refuse_bad_end(reason, _category(answer))
        return False

    def _continue(self, content: list[dict[str, Any]]) -> None:
        """A pause goes on when the model is given back what it said."""
        if self._messages[-1]["role"] == "assistant":
            content = [*self._messages.pop()["content"], *content]
        if content:
            self._messages.append({"role": "assistant", "content": content})

    def _after_a_cut(self, answer: Answer) -> None:
        if self._cut > self._limits.cut_answers:
            words = f"{self._cut} answers in a row were longer than {self._limits.output_tokens} tokens"
            raise StageFailed(Outcome.EXECUTOR_ERROR, words)
        # A tool call that was cut has no complete input: only what was said can be kept.
        said = [block for block in answer.content if block.get("type") == "text" and block["text"].strip()]
        self._say(said or [_text("(cut off)")], [_text(GO_ON)])

    def _say(self, model: list[dict[str, Any]], user: list[dict[str, Any]]) -> None:
        self._continue(model)
        self._messages.append({"role": "user", "content": user})

    def _use_tools(self, answer: Answer) -> None:
        results = [self._use(block) for block in answer.content if block.get("type") == "tool_use"]
        if not results:
            raise StageFailed(Outcome.EXECUTOR_ERROR, "the model stopped to use a tool and named none")
        self._say(list(answer.content), results)

    def _use(self, block: dict[str, Any]) -> dict[str, Any]:
        if self._assignment.is_cancelled():
            raise StageFailed(Outcome.CANCELLED, "the run was stopped")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._too_late()
        name, asked, started = str(block["name"]), block.get("input"), time.monotonic()
        result = self._tools.run(name, asked, left)
        self._watch.see(name, asked, result.text, result.is_error)
        self._refuse_contamination()
        text = shortened(arms.without_canary(result.text), self._limits.tool_output_chars)
        self._counts[name] = self._counts.get(name, 0) + 1
        self._errors += result.is_error
        self.transcript.tool(name, asked, text, result.is_error, round(time.monotonic() - started, 3))
        answer = {"type": "tool_result", "tool_use_id": block["id"], "content": text or "(no output)"}
        return {**answer, "is_error": True} if result.is_error else answer

    def _refuse_contamination(self) -> None:
        if self._watch.saw_other:
            raise arms.contaminated("a tool showed the other skill's canary")

    @property
    def _tokens(self) -> Tokens:
        return sum((answer.tokens for answer in self._answers), Tokens())

    def execution(self) -> Execution:
        """What came out, so far if the run failed."""
        tokens, last = self._tokens, self._answers[-1] if self._answers else None
        costs = [answer.cost_usd for answer in self._answers]
        return Execution(
            transcript=self.transcript.markdown(),
            transcript_events=self.transcript.json_lines(),
            metrics=Metrics(
                tool_calls=self._counts,
                total_tool_calls=sum(self._counts.values()),
                total_steps=len(self._answers),
                errors_encountered=self._errors,
            ),
            seconds=time.monotonic() - self._started,
            user_notes=take_notes(self._assignment.workspace, self._assignment.inputs),
            usage=Usage(tokens.input, tokens.output, tokens.cache_read, tokens.cache_write),
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            model=last.model if last else None,
            simulated=any(answer.simulated for answer in self._answers),
            skill_used=self._watch.used if self._assignment.skill else None,
            skill_files_read=self._watch.files_read if self._assignment.skill else (),
            sandbox_tier=self._sandbox_tier,
            details={
                "stop_reason": last.stop_reason if last else None,
                "turns": len(self._answers),
                "model_asked": self._assignment.model,
            },
        )


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _marked(message: dict[str, Any]) -> dict[str, Any]:
    """The message with a cache breakpoint on its last block: the next turn reads everything up to here."""
    *others, last = message["content"]
    return {**message, "content": [*others, {**last, "cache_control": _CACHE}]}


def _category(answer: Answer) -> str:
    category = (answer.stop_details or {}).get("category")
    return f" ({category})" if category else ""
