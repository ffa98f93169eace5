"""The endpoints of the simulator itself: what it counted, what it was asked, and what shall go wrong next."""

from collections import deque
from dataclasses import asdict
from typing import Any

from simulator.faults import read_fault
from simulator.messages import Messages
from simulator.rules import Refused
from simulator.wire import Reply, Request, error_reply, json_reply

SECRET_HEADERS = ("authorization", "x-api-key")


class Control:
    """Shows and changes a running simulator."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._recent: deque[dict[str, Any]] = deque(maxlen=messages.settings.keep_requests)

    def remember(self, request: Request) -> None:
        """Keep a request for /control/requests, without its key."""
        if not self._recent.maxlen:
            return
        headers = {name: value for name, value in request.headers.items() if name not in SECRET_HEADERS}
        how = "bearer" if "authorization" in request.headers else "x-api-key" if "x-api-key" in request.headers else ""
        kept = {"method": request.method, "path": request.path, "headers": headers, "key_sent_as": how}
        self._recent.append({**kept, "body": request.body.decode("utf-8", "replace")})

    def route(self, request: Request) -> Reply:
        """Answer one request."""
        route = f"{request.method} {request.path}"
        if route == "GET /stats":
            return json_reply(200, self._messages.stats.as_json())
        if route == "GET /control/requests":
            return json_reply(200, list(self._recent))
        try:
            return self._change(route, request)
        except (ValueError, TypeError, AttributeError) as error:
            raise Refused(f"{request.path}: {error}") from error

    def _change(self, route: str, request: Request) -> Reply:
        messages = self._messages
        if route == "POST /control/faults":
            value = request.json()
            messages.added += [read_fault(one) for one in (value if isinstance(value, list) else [value])]
        elif route == "DELETE /control/faults":
            messages.added.clear()
        elif route == "POST /control/settings":
            messages.apply(messages.settings.changed(request.json() or {}))
        elif route == "POST /control/reset":
            messages.stats.reset()
            self._recent.clear()
        else:
            return error_reply(404, "not_found_error", f"no such endpoint: {route}")
        return json_reply(200, {"faults": [asdict(fault) for fault in messages.added]})
