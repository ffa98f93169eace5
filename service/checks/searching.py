"""Looking for texts and regexes in one text: what the checks on files and on transcripts share."""

from dataclasses import dataclass

from schemas.checks import Matching
from service.checks.engine import Engine
from service.checks.evidence import excerpt, printable
from service.checks.verdict import Undecided

_COMMENT_STARTS = ("//", "#")


@dataclass(frozen=True)
class Text:
    """Something to look through: what evidence calls it, and what errors call it."""

    label: str
    path: str
    content: str


@dataclass(frozen=True)
class Banned:
    """What texts hold that they should not; the lines that were excused are counted apart."""

    hits: list[tuple[str, int, str]]  # label, line number, line
    excused: int  # by except_context
    comments: int  # terms on comment lines


def terms_of(fields: Matching) -> list[str]:
    """The plain texts to look for: `match_any` wins over `match`."""
    return fields.match_any or ([fields.match] if fields.match is not None else [])


def wanted(fields: Matching) -> str:
    """What was looked for, in words for a sentence of failure."""
    if fields.match_regex is not None:
        return f"Regex '{excerpt(fields.match_regex, 200)}' not found"
    return f"None of {printable(str(terms_of(fields)))[:300]} found"


def find(fields: Matching, texts: list[Text], engine: Engine) -> str | None:
    """The evidence that one of the texts holds what is wanted; None if none does."""
    if fields.match_regex is not None:
        return _find_regex(fields.match_regex, texts, engine)
    for text in texts:
        for term in terms_of(fields):
            if term in text.content:
                for number, line in enumerate(text.content.split("\n"), 1):
                    if term in line:
                        return f"Found '{excerpt(term, 100)}' in {text.label}:{number} — {excerpt(line, 100)}"
    return None


def find_banned(
    fields: Matching, except_context: list[str], texts: list[Text], engine: Engine, *, skip_comments: bool
) -> Banned:
    """The lines that hold what is banned; terms, unlike the regex, are not looked for on comment lines."""
    by_regex = (
        _regex_lines(fields.match_regex, texts, engine) if fields.match_regex is not None else [set()] * len(texts)
    )
    found, excused, comments = [], 0, 0
    for text, regex_lines in zip(texts, by_regex, strict=True):
        terms = [term for term in terms_of(fields) if term in text.content]
        for number, line in enumerate(text.content.split("\n"), 1) if terms or regex_lines else []:
            has_term = any(term in line for term in terms)
            is_comment = skip_comments and has_term and line.strip().startswith(_COMMENT_STARTS)
            if number not in regex_lines and (not has_term or is_comment):
                comments += is_comment
            elif any(context in line for context in except_context):
                excused += 1
            else:
                found.append((text.label, number, line))
    return Banned(found, excused, comments)


def _find_regex(pattern: str, texts: list[Text], engine: Engine) -> str | None:
    """All texts in one request; one after the other if that is too much, to know which one it is."""
    try:
        hit = engine.search(pattern, [text.content for text in texts])
    except Undecided as error:
        if len(texts) == 1:
            raise Undecided(f"the regex {error} on {texts[0].path}") from error
        return next(filter(None, (_find_regex(pattern, [text], engine) for text in texts)), None)
    return f"Regex matched '{excerpt(hit.text, 100)}' in {texts[hit.number].label}:{hit.line}" if hit else None


def _regex_lines(pattern: str, texts: list[Text], engine: Engine) -> list[set[int]]:
    try:
        return [set(lines) for lines in engine.search_lines(pattern, [text.content for text in texts])]
    except Undecided as error:
        if len(texts) == 1:
            raise Undecided(f"the regex {error} on {texts[0].path}") from error
        return [lines for text in texts for lines in _regex_lines(pattern, [text], engine)]


def banned_names(fields: Matching) -> str:
    """What is banned, for a sentence."""
    names = [*terms_of(fields), *([fields.match_regex] if fields.match_regex is not None else [])]
    return printable(", ".join(names))[:300]


def found_banned(hits: list[tuple[str, int, str]]) -> str:
    """The sentence for banned lines: the first three, then how many more."""
    first = "; ".join(f"{label}:{number} — {excerpt(line, 80)}" for label, number, line in hits[:3])
    return f"Found banned pattern: {first}" + (f" (+{len(hits) - 3} more)" if len(hits) > 3 else "")


def excuses(excused: int, comments: int) -> str:
    """What a pass passed over, so that nobody wonders."""
    parts = [f"{excused} line(s) excused by except_context"] if excused else []
    parts += [f"{comments} comment line(s) not counted"] if comments else []
    return f" ({', '.join(parts)})" if parts else ""
