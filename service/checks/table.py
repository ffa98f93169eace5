"""Which function decides which type of structural expectation."""

from collections.abc import Callable
from typing import Any

from service.checks import contents, files, json_files, scripts, transcripts
from service.checks.verdict import Given, Verdict

# The fields of each type are its class in schemas.checks.CHECK_TYPES, so the first argument differs from line to line.
CHECKS: dict[str, Callable[[Any, Given], Verdict]] = {
    "file_exists": files.file_exists,
    "file_contains": contents.file_contains,
    "file_not_contains": contents.file_not_contains,
    "no_errors": transcripts.no_errors,
    "file_count": files.file_count,
    "custom_script": scripts.custom_script,
    "json_valid": json_files.json_valid,
    "json_path": json_files.json_path,
    "file_matches_schema": json_files.file_matches_schema,
    "max_lines": files.max_lines,
    "max_words": files.max_words,
    "command_succeeds": scripts.command_succeeds,
    "transcript_contains": transcripts.transcript_contains,
    "transcript_not_contains": transcripts.transcript_not_contains,
    "tool_used": transcripts.tool_used,
    "tool_not_used": transcripts.tool_not_used,
}
