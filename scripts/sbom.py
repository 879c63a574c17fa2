#!/usr/bin/python3
"""Prints what is compiled into the program as a CycloneDX 1.5 list, from Cargo's own metadata. Usage: scripts/sbom.py VERSION"""
import json
import os
import subprocess
import sys
import time
import tomllib

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main(version):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = json.loads(subprocess.run(command, cwd=HERE, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(package["id"] for package in metadata["packages"] if package["name"] == "windtunnel")
    with open(os.path.join(HERE, "Cargo.lock"), "rb") as file:
        hashes = {(one["name"], one["version"]): one.get("checksum") for one in tomllib.load(file)["package"]}
    # What the program needs, and what that needs: not what only tests do.
    seen, open_ = {root}, [root]
    below = {}
    while open_:
        at = open_.pop()
        below[at] = [dep["pkg"] for dep in nodes[at]["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]
        for package in below[at]:
            if package not in seen:
                seen.add(package)
                open_.append(package)

    def reference(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(package):
        one = {"type": "library", "bom-ref": reference(package), "name": package["name"], "version": package["version"],
               "purl": reference(package)}
        if package["license"]:
            one["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        checksum = hashes.get((package["name"], package["version"]))
        if checksum:
            one["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return one

    order = sorted(seen - {root}, key=lambda package: reference(packages[package]))
    stamp = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    sbom = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", stamp),
            "component": {**component(packages[root]), "type": "application", "version": version},
        },
        "components": [component(packages[package]) for package in order],
        "dependencies": [
            {"ref": reference(packages[package]), "dependsOn": sorted({reference(packages[on]) for on in below[package]})}
            for package in [root, *order]
        ],
    }
    json.dump(sbom, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "0")
