"""The model of a process: one client, bounded retries, every call in the ledger.

port        Call in, Answer out; Hook and Ledger are plugged in by others
client      ModelClient: complete, stream; callable from many threads
lane        message batches, half the price
attempts    how often a call is tried and when it is handed back
failures    what an exception of the SDK means for a run
streaming   a streamed answer, put together from its bytes
gateway     the same door for a program that brings its own client; sniffing reads along,
            passing says what may pass
clean_text  text that can be written as UTF-8
background  one event loop per process, on which all requests of all threads run
prices      what a call costs, from prices.json

Nothing here imports anthropic before the first call: that costs most of a second.
"""

from service.models.client import ClientSettings, ModelClient
from service.models.port import Answer, Attempt, Call, Hook, Ledger, ModelCall, Models, SpendLimit, Tokens

__all__ = [
    "Answer",
    "Attempt",
    "Call",
    "ClientSettings",
    "Hook",
    "Ledger",
    "ModelCall",
    "ModelClient",
    "Models",
    "SpendLimit",
    "Tokens",
]
