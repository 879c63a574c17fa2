#!/usr/bin/python
# Copyright the Windtunnel authors
# MIT or Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: settings
short_description: TCP/IP settings that undo themselves unless they are confirmed
version_added: 0.1.0
author: The Windtunnel authors (@windtunnel)
description:
  - Changes TCP/IP settings by C(windtunnel settings), which reads back every value, and reverts the change unless it is confirmed in time.
  - Confirm it in a later task with I(state=confirmed), over a new connection (C(meta) C(reset_connection)). A change that cuts the
    connection is then never confirmed, and undoes itself.
options:
  settings:
    description:
      - Settings and their values, by the names of C(windtunnel settings show --all), or the kernel's.
      - Booleans are C(on) and C(off), since YAML makes booleans of those words.
      - With I(state=confirmed) what must hold on the host; the task fails where it doesn't, as after a revert.
    type: dict
    default: {}
  verdict:
    description:
      - An experiment of the host's journal instead of I(settings), by its name, the beginning of it, or C(last).
      - Only what it recommends is changed, and only on the side of the transfers on which it acts.
    type: str
  side:
    description: What this host is in the transfers that I(verdict) measured, unless it is what the host was on which the experiment ran.
    type: str
    choices: [sender, receiver]
  journal:
    description: The journal for I(verdict), if it isn't the one of the user that the task runs as.
    type: path
  state:
    description:
      - C(applied) brings the settings into force, unless they are.
      - C(confirmed) confirms the change that waits, and makes it persistent.
      - C(undone) reverts the latest change in force.
    type: str
    choices: [applied, confirmed, undone]
    default: applied
  to:
    description: "Where: C(host), C(default) (the default routes), a target such as 192.0.2.0/24, or a device."
    type: str
  confirm_within:
    description: The change is reverted after this time unless a task with I(state=confirmed) comes before it. Used with I(state=applied).
    type: str
    default: 120s
  at_once:
    description: Confirms within the same task. Only for connections that the change can't cut.
    type: bool
    default: false
  program:
    description: The path of the program, if it isn't in the search path.
    type: path
notes:
  - Supports C(check_mode) and C(diff).
"""

EXAMPLES = r"""
- name: SACK, and a larger first window
  windtunnel.tcp.settings:
    settings: {sack: on, initcwnd: 20}
    confirm_within: 2m

- name: The next task comes over a new connection
  ansible.builtin.meta: reset_connection

- name: Still here, so it may stay
  windtunnel.tcp.settings:
    state: confirmed
    settings: {sack: on, initcwnd: 20}

- name: What the latest experiment recommends
  windtunnel.tcp.settings:
    verdict: last
    journal: /home/net/.local/share/windtunnel/journal.sqlite3

- name: As it was
  windtunnel.tcp.settings:
    state: undone
"""

RETURN = r"""
changes:
  description: What the plan says of each setting, with C(old), C(new), C(target) and C(unchanged).
  returned: with settings or a verdict
  type: list
  elements: dict
id:
  description: The change's number on the host.
  returned: if there is one
  type: str
pending:
  description: Whether a change waits for its confirmation.
  returned: always
  type: bool
confirm_deadline:
  description: When it is reverted, UTC.
  returned: if this task made it
  type: str
files:
  description: Files that keep it over a boot.
  returned: if this task confirmed it
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.windtunnel.tcp.plugins.module_utils.program import ask, words


def plan(module):
    """What would change, and what stands already."""
    try:
        wanted = words(module.params["settings"])
    except ValueError as error:
        module.fail_json(msg="settings: %s" % error)
    if module.params["verdict"]:
        wanted += ["--verdict", module.params["verdict"]]
        for option in ("side", "journal"):
            wanted += ["--" + option, module.params[option]] if module.params[option] else []
    if not wanted:
        return [], wanted
    if module.params["to"]:
        wanted += ["--to", module.params["to"]]
    found = ask(module, ["settings", "plan"] + wanted)
    if found.get("skipped"):
        module.fail_json(msg="not every setting can be had here", skipped=found["skipped"])
    return found["changes"], wanted


def diff(changes):
    """Both sides of what changes, a line for each."""

    def side(which):
        return "".join("%s=%s on %s\n" % (one["key"], one[which], one["target"]) for one in changes if not one["unchanged"])

    return {"before": side("old"), "after": side("new")}


def of_phase(module, phases):
    """The newest of this host's changes that is in one of these phases."""
    changes = ask(module, ["settings", "history"])["changes"]
    found = [one for one in changes if one["here"] and one["phase"] in phases]
    return max(found, key=lambda one: int(one["id"])) if found else None


def applied(module, result):
    if not module.params["settings"] and not module.params["verdict"]:
        module.fail_json(msg="settings: there are none to apply")
    result["changes"], wanted = plan(module)
    result["changed"] = any(not one["unchanged"] for one in result["changes"])
    result["diff"] = diff(result["changes"])
    if result["changed"] and not module.check_mode:
        how = ["--yes"] if module.params["at_once"] else ["--confirm-within", module.params["confirm_within"]]
        done = ask(module, ["settings", "apply"] + wanted + how)
        result.update(id=done["id"], confirm_deadline=done.get("confirm_deadline"), notes=done.get("notes", []))
    result["pending"] = of_phase(module, ["applied"]) is not None


def confirmed(module, result):
    waits = of_phase(module, ["applied"])
    result["changes"], wanted = plan(module)
    lost = [one for one in result["changes"] if not one["unchanged"]]
    if lost:
        text = ", ".join("%s is %s" % (one["key"], one["old"]) for one in lost)
        module.fail_json(
            msg="these settings aren't in force, so there is nothing to confirm: %s. Likely cause: the change was reverted before this task. "
            "Try: windtunnel settings history on the host" % text,
            changes=result["changes"],
        )
    if waits:
        result.update(changed=True, id=waits["id"], diff={"before": "pending\n", "after": "confirmed\n"})
        if not module.check_mode:
            done = ask(module, ["settings", "confirm", waits["id"]])
            result.update(files=done["files"], notes=done["notes"])
    result["pending"] = bool(waits and module.check_mode)


def undone(module, result):
    last = of_phase(module, ["applied", "confirmed"])
    if last:
        result.update(changed=True, id=last["id"], diff={"before": "\n".join(last["changes"]) + "\n", "after": ""})
        if not module.check_mode:
            done = ask(module, ["settings", "undo", last["id"]])
            result.update(notes=done["notes"])
            if not done["done"]:
                module.fail_json(msg="change %s isn't undone in full: %s" % (last["id"], "; ".join(done["notes"])))
    waits = of_phase(module, ["applied"])
    result["pending"] = waits is not None


def main():
    module = AnsibleModule(
        argument_spec=dict(
            settings=dict(type="dict", default={}),
            verdict=dict(type="str"),
            side=dict(type="str", choices=["sender", "receiver"]),
            journal=dict(type="path"),
            state=dict(type="str", choices=["applied", "confirmed", "undone"], default="applied"),
            to=dict(type="str"),
            confirm_within=dict(type="str", default="120s"),
            at_once=dict(type="bool", default=False),
            program=dict(type="path"),
        ),
        required_by=dict(side=["verdict"], journal=["verdict"]),
        supports_check_mode=True,
    )
    if module.params["settings"] and module.params["verdict"]:
        module.fail_json(msg="settings and verdict: name one of them")
    result = dict(changed=False, pending=False)
    dict(applied=applied, confirmed=confirmed, undone=undone)[module.params["state"]](module, result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
