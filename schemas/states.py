"""The states of runs and batches.

run      waiting -> execute -> check -> judge -> settled (with an outcome)
batch    accepted -> running <-> paused -> aggregating -> finished | cancelled
comparison   accepted -> running -> finished | failed
"""

from enum import StrEnum


class Stage(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"  # a row only: admission has not let it start
    EXECUTE = "execute"  # an agent works, or is about to
    CHECK = "check"  # code looks at the files that came out
    JUDGE = "judge"  # a model judges them
    SETTLED = "settled"  # it ended; the outcome says how


class Outcome(StrEnum):
    """How a run ended; only scored and gated enter means."""

    SCORED = "scored"  # everything asked for was decided
    GATED = "gated"  # a critical structural expectation failed; not judged
    UNGRADED = "ungraded"  # the case asks for nothing that can be decided
    EXECUTOR_ERROR = "executor_error"  # the agent broke
    JUDGE_ERROR = "judge_error"  # the judge gave no usable answer
    INFRA_ERROR = "infra_error"  # our machines failed too often
    TIMEOUT = "timeout"  # a deadline passed
    REFUSED = "refused"  # the model declined
    OVER_BUDGET = "over_budget"  # the money was spent
    CONTAMINATED = "contaminated"  # the arm was not what it claims
    CANCELLED = "cancelled"  # somebody stopped the batch


class BatchState(StrEnum):
    """Where a batch stands."""

    ACCEPTED = "accepted"  # stored; no run has started
    RUNNING = "running"  # runs are open
    PAUSED = "paused"  # no waiting run starts; running ones end
    AGGREGATING = "aggregating"  # all runs settled; the aggregate is being built
    FINISHED = "finished"  # the aggregate is there
    CANCELLED = "cancelled"  # somebody stopped it; what was finished is aggregated


class Role(StrEnum):
    """What a configuration is in the comparison."""

    TREATMENT = "treatment"
    CONTROL = "control"


class ComparisonState(StrEnum):
    """Where a comparison stands."""

    ACCEPTED = "accepted"  # stored; nobody has begun
    RUNNING = "running"  # a judge compares
    FINISHED = "finished"  # its files are there
    FAILED = "failed"  # it ended without a result; the error says why
