"""The skill_creator dialect: prompts with statements, two configurations side by side."""

from schemas.analysis import Analysis, ComparisonSummary, Improvement, InstructionFollowing, TranscriptInsights
from schemas.comparison import Comparison, ExpectationResults, OutputQuality, OutputRubric
from schemas.dialects import wild
from schemas.dialects.benchmarks import PLAIN_BENCHMARK
from schemas.dialects.codecs import FLAG, ID, INTEGER, NUMBER, TEXT, TEXTS, ListOf, MapOf, one_of
from schemas.dialects.expectations import STATEMENT_LIST, STATEMENTS
from schemas.dialects.gradings import (
    CLAIMS_KEY,
    EXPECTATIONS_KEY,
    GRADED,
    METRICS,
    METRICS_KEY,
    SUMMARY_KEY,
    TIMING,
    TIMING_KEY,
    GradingShape,
    feedback_key,
    notes_key,
)
from schemas.dialects.shape import Key, Shape
from schemas.dialects.suites import (
    EXPECTED_KEY,
    ID_KEY,
    NAME_KEY,
    PROMPT_KEY,
    CaseShape,
    SuiteShape,
    files_key,
)
from schemas.eval_metadata import EvalMetadata
from schemas.findings import Level
from schemas.grading import Grading
from schemas.history import History, HistoryVersion
from schemas.kinds import Kind
from schemas.suite import Case, Suite

CASE = CaseShape(
    Case,
    ID_KEY,
    NAME_KEY,
    PROMPT_KEY,
    EXPECTED_KEY,
    files_key("input files, relative to the skill root"),
    Key(
        "expectations",
        STATEMENT_LIST,
        "statements",
        on_bad=Level.ERROR,
        aliases=wild.CASE_EXPECTATIONS,
        about="verifiable statements, passed or not",
    ),
)
SUITE = SuiteShape(
    Suite,
    Key("skill_name", TEXT, aliases=("skill",), about="name in the skill's frontmatter"),
    Key("evals", ListOf(CASE), "cases", needed=True, on_bad=Level.ERROR, aliases=wild.SUITE_CASES, about="the cases"),
    about="the suite of a skill: evals/evals.json",
)
HISTORY = Shape(
    History,
    Key("started_at", TEXT),
    Key("skill_name", TEXT),
    Key("current_best", TEXT),
    Key(
        "iterations",
        ListOf(
            Shape(
                HistoryVersion,
                Key("version", ID),
                Key("parent", TEXT, always=True),
                Key("expectation_pass_rate", NUMBER),
                Key("grading_result", one_of("baseline", "won", "lost", "tie")),
                Key("is_current_best", FLAG),
            )
        ),
        "versions",
        on_bad=Level.ERROR,
    ),
    about="the versions of a skill while it is improved",
)
GRADING = GradingShape(
    Grading,
    EXPECTATIONS_KEY,
    SUMMARY_KEY,
    METRICS_KEY,
    TIMING_KEY,
    CLAIMS_KEY,
    notes_key("object"),
    feedback_key("object"),
    about="what the grader decided about one run",
)
_OUTPUT_RUBRIC = Shape(
    OutputRubric,
    Key("content", MapOf(NUMBER), about="criteria 1-5"),
    Key("structure", MapOf(NUMBER), about="criteria 1-5"),
    Key("content_score", NUMBER),
    Key("structure_score", NUMBER),
    Key("overall_score", NUMBER, about="1-10"),
)
_OUTPUT_QUALITY = Shape(
    OutputQuality,
    Key("score", NUMBER, about="1-10"),
    Key("strengths", TEXTS),
    Key("weaknesses", TEXTS),
)
_EXPECTATION_RESULTS = Shape(
    ExpectationResults,
    Key("passed", INTEGER),
    Key("total", INTEGER),
    Key("pass_rate", NUMBER),
    Key("details", ListOf(GRADED)),
)
COMPARISON = Shape(
    Comparison,
    Key("winner", one_of("A", "B", "TIE")),
    Key("reasoning", TEXT),
    Key("rubric", MapOf(_OUTPUT_RUBRIC), about="by label, A and B"),
    Key("output_quality", MapOf(_OUTPUT_QUALITY)),
    Key("expectation_results", MapOf(_EXPECTATION_RESULTS)),
    about="two outputs compared blind",
)
_SUGGESTION = Shape(
    Improvement,
    Key("priority", one_of("high", "medium", "low")),
    Key("category", TEXT, "area"),
    Key("suggestion", TEXT),
    Key("expected_impact", TEXT),
)
ANALYSIS = Shape(
    Analysis,
    Key(
        "comparison_summary",
        Shape(
            ComparisonSummary,
            Key("winner", TEXT),
            Key("winner_skill", TEXT),
            Key("loser_skill", TEXT),
            Key("comparator_reasoning", TEXT),
        ),
    ),
    Key("winner_strengths", TEXTS, "strengths"),
    Key("loser_weaknesses", TEXTS, "weaknesses"),
    Key(
        "instruction_following",
        MapOf(Shape(InstructionFollowing, Key("score", NUMBER, about="1-10"), Key("issues", TEXTS))),
        about="by side, winner and loser",
    ),
    Key("improvement_suggestions", ListOf(_SUGGESTION), "suggestions"),
    Key(
        "transcript_insights",
        Shape(TranscriptInsights, Key("winner_execution_pattern", TEXT), Key("loser_execution_pattern", TEXT)),
    ),
    about="why one version won and what to change in the other",
)
EVAL_METADATA = Shape(
    EvalMetadata,
    Key("eval_id", ID),
    Key("eval_name", TEXT),
    Key("prompt", TEXT),
    Key("assertions", STATEMENTS, aliases=("expectations",)),
    Key("input_files", TEXTS),
    Key("skill_path", TEXT),
    Key("output_dir", TEXT),
    Key("inputs_dir", TEXT),
    Key("outputs_dir", TEXT),
    Key("no_skill", FLAG),
    Key("original_skill_path", TEXT),
    about="what a run directory says about its case",
)

DOCUMENTS: dict[Kind, Shape] = {
    Kind.EVALS: SUITE,
    Kind.HISTORY: HISTORY,
    Kind.GRADING: GRADING,
    Kind.METRICS: METRICS,
    Kind.TIMING: TIMING,
    Kind.BENCHMARK: PLAIN_BENCHMARK,
    Kind.COMPARISON: COMPARISON,
    Kind.ANALYSIS: ANALYSIS,
    Kind.EVAL_METADATA: EVAL_METADATA,
}
