"""Spellings found in other people's files: read with a note, never written by us."""

PROMPT = ("query", "input", "task")
CASE_ID = ("eval_id", "case_id")
CASE_NAME = ("eval_name", "title")
SUITE_CASES = ("evaluations", "test_cases", "testcases", "tests")
CASE_EXPECTATIONS = ("assertions", "expected_behavior", "expected_behaviors", "success_criteria")
CASE_FILES = ("input_files",)
# In this order: the sentence before the label.
STATEMENT_TEXT = ("description", "assertion", "expectation", "statement", "criterion", "check", "name")
GRADED_LIST = ("assertion_results", "assertions", "expectation_results")
GRADED_PASSED = ("met", "pass", "success")
GRADED_EVIDENCE = ("reason", "reasoning", "details", "explanation")
NOTES = ("analyst_notes", "analyst_observations", "observations")

# Units must be in the name: a bare `duration` is not guessed.
SECONDS = (
    "duration_seconds",
    "total_seconds",
    "total_time_seconds",
    "elapsed_seconds",
    "time_seconds",
    "wall_clock_seconds",
    "wall_time_seconds",
    "duration_s",
    "elapsed_s",
    "durationSeconds",
)
MILLISECONDS = ("total_duration_ms", "elapsed_ms", "time_ms", "durationMs", "total_ms", "wall_clock_ms")
TOKENS = ("tokens", "tokens_used", "token_count", "totalTokens")

# Keys of cases that ask for something we keep but do not check; people should know.
UNCHECKED = (
    "anti_expectations",
    "expected_terms",
    "expected_context",
    "must_not_contain",
    "assertions_file",
    "expectations_file",
    "prompt_file",
)

# Findings after which a file is no longer in the dialect it resembles.
DEVIATIONS = frozenset(
    {"renamed", "reshaped", "typed", "objects", "generated_id", "bare_list", "one_case", "recomputed"}
)
