"""Running what we do not trust, and reading what it left behind.

port        what a caller sees: Command in, Finished out, SandboxFailed when the sandbox itself broke
opening     open_sandbox: picks a tier, probes it honestly, refuses rather than weakens
bubblewrap, landlock, plain     one tier each; capture reads what all of them write
seccomp     the system call filter of both confining tiers
slots, ownership, scratch, removal      who the command is on this machine, and where its files live
reader, globs, unpack           looking at hostile folders and archives from outside
"""

from service.sandbox.opening import open_sandbox
from service.sandbox.port import Command, Finished, Limits, Mount, Sandbox, SandboxFailed, bash

__all__ = ["Command", "Finished", "Limits", "Mount", "Sandbox", "SandboxFailed", "bash", "open_sandbox"]
