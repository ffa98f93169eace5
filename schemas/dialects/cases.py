"""The cases dialect: criteria scored 1-5, versions instead of configurations."""

from schemas.analysis import Analysis, Improvement
from schemas.comparison import Comparison
from schemas.dialects import wild
from schemas.dialects.codecs import FLAG, ID, INTEGER, NUMBER, TEXT, TEXTS, ListOf, MapOf, one_of
from schemas.dialects.expectations import CRITERION_LIST
from schemas.dialects.gradings import CLAIMS_KEY, GRADED, METRICS_KEY, feedback_key, notes_key
from schemas.dialects.shape import Key, Shape, foreign
from schemas.dialects.suites import EXPECTED_KEY, ID_KEY, NAME_KEY, PROMPT_KEY, CaseShape, SuiteShape, files_key
from schemas.findings import Level
from schemas.grading import ConventionCheck, CriterionResult, Grading
from schemas.history import History, HistoryVersion
from schemas.kinds import Kind
from schemas.suite import Case, Suite

CASE = CaseShape(
    Case,
    ID_KEY,
    *foreign([NAME_KEY]),
    PROMPT_KEY,
    *foreign([EXPECTED_KEY]),
    files_key("additional files, relative to the workspace"),
    Key(
        "expectations",
        CRITERION_LIST,
        "criteria",
        on_bad=Level.ERROR,
        aliases=wild.CASE_EXPECTATIONS,
        about="criteria, scored 1-5; at least one of them required",
    ),
)
SUITE = SuiteShape(
    Suite,
    Key("version", TEXT, "schema_version", about="schema version"),
    Key("skill", TEXT, "skill_path", about="path to the skill under test"),
    *foreign([Key("skill_name", TEXT)]),
    Key("cases", ListOf(CASE), needed=True, on_bad=Level.ERROR, about="the cases"),
    about="the suite of a skill: evals/evals.json",
)
HISTORY = Shape(
    History,
    Key(
        "versions",
        ListOf(
            Shape(
                HistoryVersion,
                Key("version", ID, about="0, 1, …"),
                Key("timestamp", TEXT),
                Key("description", TEXT),
                Key("git_hash", TEXT, always=True),
                Key("path", TEXT, about="relative to the workspace"),
                Key("average_score", NUMBER, always=True, about="1-5"),
            )
        ),
        on_bad=Level.ERROR,
    ),
    Key("current_version", INTEGER, about="the version being worked on"),
    about="the versions of a skill",
)
GRADING = Shape(
    Grading,
    Key("case_id", ID),
    Key("version", INTEGER, always=True, about="the version of the skill; null for a run without one"),
    Key("run", INTEGER),
    Key("overall_score", NUMBER, always=True, about="mean of all scores, one decimal"),
    Key("required_score", NUMBER, always=True, about="mean over the required criteria, one decimal; null without any"),
    Key(
        "results",
        ListOf(
            Shape(
                CriterionResult,
                Key("criterion", TEXT, needed=True),
                Key("score", NUMBER, about="1-5; whole from one judge, a panel's mean need not be"),
                Key("passed", FLAG, about="score >= 3"),
                Key("reasoning", TEXT),
            )
        ),
        on_bad=Level.ERROR,
    ),
    Key("overall", one_of("pass", "fail"), about="pass if every required criterion passed"),
    Key(
        "convention_compliance",
        MapOf(Shape(ConventionCheck, Key("passed", FLAG), Key("details", TEXT))),
        "conventions",
    ),
    CLAIMS_KEY,
    notes_key("text"),
    feedback_key("text"),
    METRICS_KEY,
    Key("expectations", ListOf(GRADED), about="Assay: what a case asks besides its criteria; absent when nothing"),
    about="what the grader decided about one run",
)
COMPARISON = Shape(
    Comparison,
    Key("eval_prompt", TEXT),
    Key("winner", one_of("A", "B", "TIE")),
    Key("reasoning", TEXT),
    Key("scores", MapOf(MapOf(NUMBER)), about="1-10 by dimension, then by label"),
    about="two outputs compared blind",
)
ANALYSIS = Shape(
    Analysis,
    Key("winner_version", TEXT),
    Key("loser_version", TEXT),
    Key("strengths", TEXTS),
    Key("weaknesses", TEXTS),
    Key(
        "suggestions",
        ListOf(
            Shape(Improvement, Key("area", TEXT), Key("before", TEXT), Key("after", TEXT), Key("reasoning", TEXT)),
        ),
    ),
    about="why one version won and what to change in the other",
)

DOCUMENTS: dict[Kind, Shape] = {
    Kind.EVALS: SUITE,
    Kind.HISTORY: HISTORY,
    Kind.GRADING: GRADING,
    Kind.COMPARISON: COMPARISON,
    Kind.ANALYSIS: ANALYSIS,
}
