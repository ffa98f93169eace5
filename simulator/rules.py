"""What the API itself refuses, so that a client that sends nonsense finds out here and not in production."""

from typing import Any

from simulator.conversation import Conversation

SAMPLING = ("temperature", "top_p", "top_k")
FIRST_VERSION_WITHOUT_SAMPLING = "2026-10-21"
MAX_BREAKPOINTS = 4


class Refused(Exception):
    """The request breaks a rule of the API: answered with 400 invalid_request_error."""


def check_request(asked: Conversation, version: str) -> None:
    """Raise Refused for the first rule that the request breaks."""
    body = asked.body
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise Refused("model: field required")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 0:
        raise Refused("max_tokens: a number of 0 or more is required")
    used = [name for name in SAMPLING if name in body]
    if used and version >= FIRST_VERSION_WITHOUT_SAMPLING:
        raise Refused(f"{used[0]}: extra inputs are not permitted")
    _check_messages(asked.messages)
    _check_breakpoints(body)
    if asked.schema is not None:
        _check_schema(asked.schema, "output_config.format.schema")


def _check_messages(messages: list[dict[str, Any]]) -> None:
    if not messages:
        raise Refused("messages: at least one message is required")
    if messages[0].get("role") != "user":
        raise Refused("messages: the first message must use the user role")
    for index, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant", "system"):
            raise Refused(f"messages.{index}.role: must be user, assistant or system")
        _check_content(index, message.get("content"))
    _check_tool_results(messages)


def _check_content(index: int, content: Any) -> None:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise Refused(f"messages.{index}.content: must not be empty")
    for block in content:
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            raise Refused(f"messages.{index}.content: text content blocks must be non-empty")


def _check_tool_results(messages: list[dict[str, Any]]) -> None:
    spoken = [message for message in messages if message.get("role") != "system"]
    for index, message in enumerate(spoken):
        wanted = _ids(message, "tool_use", "id") if message.get("role") == "assistant" else []
        following = spoken[index + 1] if index + 1 < len(spoken) else {}
        given = _ids(following, "tool_result", "tool_use_id")
        missing = [name for name in wanted if name not in given]
        if missing:
            raise Refused(f"messages.{index}: tool_use ids were found without tool_result blocks after: {missing[0]}")
        if len(set(given)) != len(given):
            raise Refused(f"messages.{index + 1}: each tool_use must have a single result")


def _ids(message: dict[str, Any], kind: str, key: str) -> list[str]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [str(block.get(key)) for block in content if block.get("type") == kind]


def _check_breakpoints(body: dict[str, Any]) -> None:
    count = _breakpoints(body.get("tools")) + _breakpoints(body.get("system"))
    count += sum(_breakpoints(message.get("content")) for message in body["messages"])
    count += 1 if body.get("cache_control") else 0
    if count > MAX_BREAKPOINTS:
        raise Refused(f"a maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided, found {count}")


def _breakpoints(blocks: Any) -> int:
    return sum(1 for block in blocks if block.get("cache_control")) if isinstance(blocks, list) else 0


def _check_schema(schema: Any, place: str) -> None:
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        raise Refused(f"{place}: for 'object' type, 'additionalProperties' must be explicitly set to false")
    for key in ("minimum", "maximum", "maxItems", "pattern", "multipleOf", "maxLength", "minLength"):
        if key in schema:
            raise Refused(f"{place}: property '{key}' is not supported")
    for name, child in [*(schema.get("properties") or {}).items(), *(schema.get("$defs") or {}).items()]:
        _check_schema(child, f"{place}.{name}")
    _check_schema(schema.get("items"), f"{place}.items")
