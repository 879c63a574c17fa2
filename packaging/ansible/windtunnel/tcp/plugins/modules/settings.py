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
      - With I(state=confirmed) what must hold on the host; the task fails where it doesn't, as after a revert. Only a change that makes
        nothing but these settings is confirmed.
      - With I(state=undone) what is to be as it was before. Only changes that made nothing but these settings are taken back.
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
  id:
    description:
      - With I(state=confirmed) or I(state=undone) the number of the one change that is meant, as the task that made it returned it.
    type: str
  state:
    description:
      - C(applied) brings the settings into force, unless they are.
      - C(confirmed) confirms the change that waits, and makes it persistent. With I(settings) or I(verdict) it must make nothing but these.
        Where it makes others beside them the task fails; a change that makes none of them waits on, and C(notes) name it.
      - C(undone) with I(settings) or I(verdict) reverts the changes that made them, and is C(ok) where none in force has. With I(id) it
        reverts that change. With none of them it reverts the host's latest change if that is in force, whoever made it, and none before it.
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
    settings: {sack: on, initcwnd: 20}

- name: A trial of something else
  windtunnel.tcp.settings:
    settings: {ttl: 128}
    confirm_within: 10m
  register: trial

- name: Exactly this change, if it was one
  windtunnel.tcp.settings:
    state: undone
    id: "{{ trial.id }}"
  when: trial is changed
"""

RETURN = r"""
changes:
  description: What the plan says of each setting, with C(old), C(new), C(target) and C(unchanged).
  returned: with settings or a verdict
  type: list
  elements: dict
id:
  description: The number on the host of the change that this task made, confirmed or reverted, or that makes its settings and waits.
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
notes:
  description: What else there is to know, as of changes that were left alone. Those of the program have C(key) and C(text).
  returned: if there is any
  type: list
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


def history(module):
    """This host's changes, the latest first."""
    changes = ask(module, ["settings", "history"])["changes"]
    return sorted((one for one in changes if one["here"]), key=lambda one: int(one["id"]), reverse=True)


def waiting(changes):
    """The change that waits for its confirmation; None where none does."""
    return next((one for one in changes if one["phase"] == "applied"), None)


def by_id(module, changes):
    """The change that the task names, if it names one."""
    if not module.params["id"]:
        return None
    found = next((one for one in changes if one["id"] == module.params["id"]), None)
    if found is None:
        module.fail_json(msg="id: this host has no change %s. Try: windtunnel settings history on the host" % module.params["id"])
    return found


def texts(planned):
    """What the plan makes, in the words in which changes are kept."""
    return ["%s=%s on %s" % (one["key"], one["new"], one["target"]) for one in planned]


def is_of(change, planned):
    """Whether a change makes nothing but what is planned. One of routes that came or went makes more than settings."""
    return bool(change["changes"]) and not change.get("routes") and set(change["changes"]) <= set(texts(planned))


def others(change, planned):
    """What a change makes beside what is planned."""
    known = texts(planned)
    routes = ["routes"] if change.get("routes") else []
    return ", ".join([one for one in change["changes"] if one not in known] + routes)


def place(text):
    """The key and the target of a setting as it is kept: KEY=VALUE on TARGET."""
    key, rest = text.split("=", 1)
    return key, rest.split(" on ", 1)[1]


def makers(row, changes):
    """The changes in force that made a setting what it is, the latest first, as far as no other value comes between them."""
    found = []
    for change in changes:
        for text in change["changes"]:
            key, target = place(text)
            # A setting of the kernel has several names, and is one.
            if target == row["target"] and (key == row["key"] or row["scope"] == "host"):
                if text not in texts([row]):
                    return found
                found.append(change)
    return found


def applied(module, result):
    if not module.params["settings"] and not module.params["verdict"]:
        module.fail_json(msg="settings: there are none to apply")
    if module.params["id"]:
        module.fail_json(msg="id: names a change for state=confirmed or state=undone")
    result["changes"], wanted = plan(module)
    result["changed"] = any(not one["unchanged"] for one in result["changes"])
    result["diff"] = diff(result["changes"])
    if result["changed"] and not module.check_mode:
        how = ["--yes"] if module.params["at_once"] else ["--confirm-within", module.params["confirm_within"]]
        done = ask(module, ["settings", "apply"] + wanted + how)
        result.update(id=done["id"], confirm_deadline=done.get("confirm_deadline"), notes=done.get("notes", []))
    waits = waiting(history(module))
    result["pending"] = waits is not None
    if waits and not result["changed"] and is_of(waits, result["changes"]):
        result["id"] = waits["id"]


def to_confirm(module, waits, named, result):
    """The change to confirm; None where there is nothing to do."""
    if named:
        if named["phase"] not in ("applied", "confirmed"):
            module.fail_json(
                msg="change %s isn't in force, so there is nothing to confirm: it is %s. Try: windtunnel settings history on the host"
                % (named["id"], named["phase"])
            )
        return named if named["phase"] == "applied" else None
    planned = result["changes"]
    if not waits or not planned or is_of(waits, planned):
        return waits
    said = "change %s waits for its confirmation" % waits["id"]
    if set(waits["changes"]) & set(texts(planned)):
        module.fail_json(
            msg="%s and makes more than these settings: %s. Likely cause: somebody else made it. Try: windtunnel settings confirm on the "
            "host, or id: %s in this task, if all of it is to stay" % (said, others(waits, planned), waits["id"]),
            changes=planned,
        )
    result["notes"] = ["%s, and isn't this task's: %s" % (said, others(waits, planned))]
    return None


def confirmed(module, result):
    changes = history(module)
    waits, named = waiting(changes), by_id(module, changes)
    result["changes"], wanted = plan(module)
    lost = [one for one in result["changes"] if not one["unchanged"]]
    if lost:
        text = ", ".join("%s is %s" % (one["key"], one["old"]) for one in lost)
        module.fail_json(
            msg="these settings aren't in force, so there is nothing to confirm: %s. Likely cause: the change was reverted before this task. "
            "Try: windtunnel settings history on the host" % text,
            changes=result["changes"],
        )
    change = to_confirm(module, waits, named, result)
    if change:
        before, after = ("".join("%s: %s\n" % (word, one) for one in change["changes"]) for word in ("pending", "confirmed"))
        result.update(changed=True, id=change["id"], diff={"before": before, "after": after})
        if not module.check_mode:
            done = ask(module, ["settings", "confirm", change["id"]])
            result.update(files=done["files"], notes=done["notes"])
    result["pending"] = waits is not None and (module.check_mode or change is not waits)


def to_undo(module, changes, result):
    """The changes to take back, the latest first."""
    in_force = [one for one in changes if one["phase"] in ("applied", "confirmed")]
    named = by_id(module, changes)
    if named:
        return [one for one in in_force if one is named]
    result["changes"], wanted = plan(module)
    if not wanted:
        if in_force and in_force[0] is not changes[0]:
            ids = ", ".join(one["id"] for one in in_force)
            result["notes"] = ["the latest change isn't in force any more; earlier ones are, and are named by settings or id: %s" % ids]
            return []
        return in_force[:1]
    found, mixed = [], []
    for row in result["changes"]:
        for change in makers(row, in_force) if row["unchanged"] else []:
            if not is_of(change, result["changes"]):
                mixed += [change] if change not in mixed else []
                break
            found += [change] if change not in found else []
    said = ["change %s made more than these settings: %s" % (one["id"], others(one, result["changes"])) for one in mixed]
    if mixed and not found and all(one["unchanged"] for one in result["changes"]):
        module.fail_json(
            msg="%s. It is taken back whole or not at all. Try: id: %s in this task, if all of it is to go" % (said[0], mixed[0]["id"]),
            changes=result["changes"],
        )
    if mixed:
        result["notes"] = said
    return sorted(found, key=lambda one: int(one["id"]), reverse=True)


def undone(module, result):
    for change in to_undo(module, history(module), result):
        before = result.get("diff", {}).get("before", "") + "\n".join(change["changes"]) + "\n"
        result.update(changed=True, id=result.get("id", change["id"]), diff={"before": before, "after": ""})
        if not module.check_mode:
            done = ask(module, ["settings", "undo", change["id"]])
            result["notes"] = result.get("notes", []) + done["notes"]
            if not done["done"]:
                module.fail_json(msg="change %s isn't undone in full: %s" % (change["id"], "; ".join(done["notes"])))
    result["pending"] = waiting(history(module)) is not None


def main():
    module = AnsibleModule(
        argument_spec=dict(
            settings=dict(type="dict", default={}),
            verdict=dict(type="str"),
            side=dict(type="str", choices=["sender", "receiver"]),
            journal=dict(type="path"),
            id=dict(type="str"),
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
