"""Which judgements are made once more, to see how steady the judge is."""

import hashlib


def is_sampled(judgement_id: str, share: float) -> bool:
    """Whether a judgement is in the sample; the same one is in it every time, and a larger share only adds."""
    draw = int.from_bytes(hashlib.sha256(f"rejudge:{judgement_id}".encode()).digest()[:8], "big")
    return draw / 2**64 < share
