#!/usr/bin/python
# Copyright the Windtunnel authors
# MIT or Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: verdict
short_description: What an experiment of the host's journal allows one to say
version_added: 0.1.0
author: The Windtunnel authors (@windtunnel)
description:
  - Reads C(windtunnel report --json). Nothing is measured and nothing is changed.
  - Fails for what compares no settings, as single tests, proofs, and comparisons of congestion controls or of stacks.
options:
  experiment:
    description: Its name, the beginning of it, or C(last).
    type: str
    default: last
  journal:
    description: The journal, if it isn't the one of the user that the task runs as.
    type: path
  program:
    description: The path of the program, if it isn't in the search path.
    type: path
notes:
  - Supports C(check_mode).
"""

EXAMPLES = r"""
- windtunnel.tcp.verdict:
    journal: /home/net/.local/share/windtunnel/journal.sqlite3
  register: found

- name: What it recommends for this host, measured over the real path
  windtunnel.tcp.settings:
    verdict: "{{ found.id }}"
    journal: /home/net/.local/share/windtunnel/journal.sqlite3
  when: found.action == 'set' and found.host == 'here'

- name: What a rehearsal of downloads recommends for the server, where this host is one
  windtunnel.tcp.settings:
    verdict: "{{ found.id }}"
    journal: /home/net/.local/share/windtunnel/journal.sqlite3
    side: sender
    to: default
  when: found.action == 'set' and found.host == 'server'
"""

RETURN = r"""
id:
  description: The experiment's name.
  returned: always
  type: str
action:
  description: What to do, as C(set), C(keep), C(undecided) or C(failed), where nothing could be measured.
  returned: always
  type: str
setting:
  description: What to set, as KEY=VALUE, separated by spaces.
  returned: if the action is C(set)
  type: str
host:
  description:
    - On which host of the experiment. C(here) is the one on which it ran, over a real path; C(client) and C(server) are the ends of one in a lab,
      and C(server) the other end of a real path, too. C(both) is each end, with the same settings or with those that C(verdict.answer.do) tells
      for each.
    - The settings module with I(verdict) takes what acts on its own host's side, and fails where some of it acts on the other end.
  returned: if the action is C(set)
  type: str
verdict:
  description: The report's verdict, with C(kind), C(settings), C(ratio), C(at_least), C(evidence), C(headline) and C(details).
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.windtunnel.tcp.plugins.module_utils.program import ask

# What the reports that compare no settings have, and what they are.
OTHERS = (("algorithms", "compares congestion controls"), ("stacks", "compares TCP/IP stacks"), ("change", "is a proof of a change"))


def main():
    module = AnsibleModule(
        argument_spec=dict(experiment=dict(type="str", default="last"), journal=dict(type="path"), program=dict(type="path")),
        supports_check_mode=True,
    )
    arguments = ["report", module.params["experiment"]]
    if module.params["journal"]:
        arguments += ["--journal", module.params["journal"]]
    # 1 is the answer "no difference shown".
    found = ask(module, arguments, accept=(0, 1))
    for name, what in OTHERS:
        if name in found:
            module.fail_json(
                msg="%s %s: it compares no settings, and recommends none. Try: windtunnel report %s on the host, or another experiment"
                % (found["id"], what, found["id"])
            )
    verdict = found.get("verdict") or {}
    answer = verdict.get("answer") or {}
    action = answer.get("action", "undecided")
    named = dict((name, answer.get(name)) for name in ("setting", "host")) if action == "set" else {}
    module.exit_json(changed=False, id=found["id"], verdict=verdict, action=action, **named)


if __name__ == "__main__":
    main()
