# Copyright the Windtunnel authors
# MIT or Apache-2.0
"""The program on the managed host, and its answers."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json


def words(settings):
    """KEY=VALUE for each setting. YAML makes booleans of on and off, yes and no; the program has on and off."""
    found = []
    for key, value in sorted(settings.items()):
        if value is None:
            raise ValueError("%s has no value" % key)
        if isinstance(value, bool):
            value = "on" if value else "off"
        elif not isinstance(value, (str, int)):
            raise ValueError("%s: %r is neither a number nor a word" % (key, value))
        found.append("%s=%s" % (key, value))
    return found


def problem(out, err):
    """What stopped the program: the last object that it wrote, or its text."""
    for line in reversed(err.splitlines() + out.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        found = found.get("error") or found
        if isinstance(found, dict) and "what" in found:
            return found
    return {"what": err.strip() or out.strip() or "windtunnel ended without a word", "cause": None, "try": None}


def ask(module, arguments, accept=(0,)):
    """The object that a command answers with; fails the task with what happened, the cause and what to try."""
    program = module.params["program"] or module.get_bin_path("windtunnel", required=True)
    code, out, err = module.run_command([program] + arguments + ["--json"])
    if code in accept:
        for line in out.splitlines():
            try:
                return json.loads(line)
            except ValueError:
                continue
    found = problem(out, err)
    said = [found["what"]]
    if found.get("cause"):
        said.append("Cause: " + found["cause"])
    if found.get("try"):
        said.append("Try: " + found["try"])
    module.fail_json(msg=". ".join(text.rstrip(".") for text in said), problem=found, rc=code)
