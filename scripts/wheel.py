#!/usr/bin/python3
"""Makes the Python wheel from a built program and python/src: a zip file, nothing is compiled and nothing is downloaded.

The platform's tag is what the program itself needs: the newest version of glibc among its symbols. The same program and
commit give the same file (SOURCE_DATE_EPOCH). Usage: scripts/wheel.py PROGRAM FOLDER; prints the wheel's path."""

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "windtunnel"
# Libraries that every manylinux system has (PEP 600); the wheel brings no others.
ALLOWED = {"libgcc_s.so.1", "libm.so.6", "libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
METADATA = """\
Metadata-Version: 2.1
Name: windtunnel
Version: {version}
Summary: Finds the TCP/IP settings that make a connection fastest, and whether the difference is real
License: MIT OR Apache-2.0
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{readme}"""


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tag(program):
    """manylinux_2_35_x86_64, from the symbols that the program asks of glibc."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", read("readelf", "-d", "-W", program)))
    if needed - ALLOWED:
        sys.exit(f"wheel: the program needs {', '.join(sorted(needed - ALLOWED))}, which not every system has")
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", read("readelf", "-V", "-W", program))
    if not versions:
        return f"linux_{platform.machine()}"
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="compresses little: for tests of a debug build")
    options = parser.parse_args()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or read("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    date = max(time.gmtime(epoch)[:6], (1980, 1, 1, 0, 0, 0))
    version = read(options.program, "--version").split()[1]
    platform_tag = tag(options.program)
    info = f"{NAME}-{version}.dist-info"
    with tempfile.TemporaryDirectory() as place:
        program = pathlib.Path(place) / NAME
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", "--remove-section=.comment", "-o", program, options.program], check=True)
        else:
            shutil.copyfile(options.program, program)
        files = [(f"{NAME}-{version}.data/scripts/{NAME}", program.read_bytes(), 0o755)]
    package = ROOT / "python/src" / NAME
    files += [(f"{NAME}/{path.name}", path.read_bytes(), 0o644) for path in sorted(package.iterdir()) if path.suffix == ".py" or path.name == "py.typed"]
    files += [(f"{info}/{path.name}", path.read_bytes(), 0o644) for path in sorted(ROOT.glob("LICENSE-*"))]
    readme = (ROOT / "python/README.md").read_text()
    files += [
        (f"{info}/METADATA", METADATA.format(version=version, readme=readme).encode(), 0o644),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: windtunnel\nRoot-Is-Purelib: false\nTag: py3-none-{platform_tag}\n".encode(), 0o644),
    ]
    record = "".join(f"{name},{digest(data)},{len(data)}\n" for name, data, _ in files) + f"{info}/RECORD,,\n"
    files.append((f"{info}/RECORD", record.encode(), 0o644))
    options.folder.mkdir(parents=True, exist_ok=True)
    for old in options.folder.glob(f"{NAME}-*.whl"):
        old.unlink()
    wheel = options.folder / f"{NAME}-{version}-py3-none-{platform_tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1 if options.quick else 9) as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    main()
