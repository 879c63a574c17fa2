#!/usr/bin/python3
"""Checks the dashboard: every metric and label in it is one that the program writes, and Prometheus' promtool reads every query.

Usage: packaging/grafana/check.py PROGRAM [PROMTOOL]"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# What Grafana puts in their place.
VARIABLES = {"$instance": ".*", "$target": ".*"}
# What Prometheus adds itself.
OWN_LABELS = {"instance"}


def queries(dashboard):
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    found += [re.sub(r"^label_values\((.*), (\w+)\)$", r"count by (\2) (\1)", one["query"]) for one in dashboard["templating"]["list"] if one["type"] == "query"]
    for name, value in VARIABLES.items():
        found = [query.replace(name, value) for query in found]
    return found


def main():
    program = sys.argv[1]
    promtool = sys.argv[2] if len(sys.argv) > 2 else "promtool"
    dashboard = json.loads((HERE / "windtunnel.json").read_text())
    with tempfile.TemporaryDirectory() as place:
        journal = f"{place}/journal.sqlite3"
        # Metrics of targets are there where there was an experiment.
        done = subprocess.run([program, "tune", "--lab", "lan", "--levels", "cc=reno", "--workload", "bulk:size=64KiB", "--budget", "12 trials",
                               "--no-model", "--quiet", "--json", "--journal", journal], capture_output=True, text=True)
        if done.returncode > 1:
            sys.exit(done.stderr)
        text = subprocess.run([program, "metrics", "--journal", journal], check=True, capture_output=True, text=True).stdout
        # Some are there only after a recommendation, or while a change waits: those the guide names.
        guide = (HERE.parent.parent / "docs/guide/journal.md").read_text()
        written = set(re.findall(r"^# TYPE (\w+)", text, re.M)) | set(re.findall(r"`(windtunnel_\w+)`", guide))
        labels = set(re.findall(r'[{,](\w+)="', text)) | OWN_LABELS
        wrong = []
        for query in queries(dashboard):
            wrong += [f"{query}: {name} is no metric" for name in re.findall(r"windtunnel_\w+", query) if name not in written]
            wrong += [f"{query}: {name} is no label" for name in re.findall(r"(\w+)=~", query) if name not in labels]
        for panel in dashboard["panels"]:
            legend = panel["targets"][0]["legendFormat"]
            wrong += [f"{panel['title']}: {name} is no label" for name in re.findall(r"\{\{(\w+)\}\}", legend) if name not in labels]
        if wrong:
            sys.exit("\n".join(wrong))
        rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries(dashboard))]
        # JSON is YAML.
        file = pathlib.Path(place) / "rules.yml"
        file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
        subprocess.run([promtool, "check", "rules", str(file)], check=True, stdout=subprocess.DEVNULL)
    print(f"the dashboard's {len(rules)} queries are read by promtool, and ask for what the program writes")


if __name__ == "__main__":
    main()
