"""Structural expectations: decided by code, from files, transcript and counts alone.

checking    check: one case's expectations -> structural.json; checking a run and the command line both call it
preflight   what can be known before anything runs: bad regexes, bad paths, scripts without a sandbox
table       type -> function; a new type is a function, its line there and its fields in schemas/checks.py
files, contents, json_files, scripts, tools     the functions
engine      the killable process in which regexes and JSON of strangers are worked on
"""

from service.checks.checking import Tools, check
from service.checks.preflight import preflight

__all__ = ["Tools", "check", "preflight"]
