#!/usr/bin/env python3
"""Whether every relative link of README, guide, results and decisions leads to a file, and to a heading where it names one, and
whether the site has every page."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text):
    """The names of headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+)$", FENCE.sub("", text), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


def main():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    wrong, links = [], 0
    for name in listed.stdout.split():
        page = ROOT / name
        for link in LINK.findall(FENCE.sub("", page.read_text())):
            # The table of contents is written from the top.
            if re.match(r"[a-z]+:", link) or name.endswith("SUMMARY.md"):
                continue
            links += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path) if path else page
            if not target.exists():
                wrong.append(f"{name}: {link}: there is no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                wrong.append(f"{name}: {link}: there is no such heading")
    contents = (ROOT / "packaging/site/SUMMARY.md").read_text()
    named = set(re.findall(r"\]\(([^)]+)\)", contents))
    pages = [name for name in listed.stdout.split() if name.startswith("docs/")]
    wrong += [f"packaging/site/SUMMARY.md: {name} is left out" for name in pages if name not in named]
    wrong += [f"packaging/site/SUMMARY.md: {name}: there is no such file" for name in named if not (ROOT / name).exists()]
    print("\n".join(wrong) or f"{links} links lead somewhere")
    if links < 50:
        sys.exit("links.py: that is too few: nothing was looked at")
    sys.exit(1 if wrong else 0)


main()
