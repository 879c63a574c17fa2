#!/usr/bin/env python3
"""Writes libraries to link against so that a program starts with an older glibc than this system's.

A program asks for the newest version of each symbol that the linker finds. These stubs have the symbols of this system's glibc without any
code, each in its newest version up to the one that is named, in the libraries where they were before glibc 2.34 put them
together. What the program calls when it runs is the real glibc, whatever its version; names are resolved as everywhere (NSS).
shim.c and start.c beside this file have what such a program would lack.

Usage: stubs.py FOLDER 2.28, then: cc -L FOLDER -Wl,--wrap=__libc_start_main -Wl,--allow-shlib-undefined …"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LINE = re.compile(r"^[0-9a-f]{16} (.{7}) (\S+)\s+([0-9a-f]{16})\s+\(?(GLIBC_[0-9.]+)\)?\s+(\S+)$")
# What glibc 2.34 moved into libc.so.6, by the library that had it. The order counts.
MOVED = [("libdl.so.2", r"dl"), ("librt.so.1", r"aio_|lio_|mq_|shm_|timer_"), ("libutil.so.1", r"openpty|forkpty|log(in|out|wtmp)"), ("libpthread.so.0", r".")]


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(int(part) for part in version.removeprefix("GLIBC_").split("."))


def symbols(library, newest):
    """Each symbol of a library: whether code, its size, and its newest version that is old enough; those that moved are marked."""
    found = {}
    for line in read("objdump", "-T", library).splitlines():
        match = LINE.match(line)
        if not match or "*UND*" in line or match[2] == "*ABS*" or match[2].startswith(".t") and match[2] != ".text":
            continue
        found.setdefault(match[5], []).append((number(match[4]), "F" in match[1] or "i" in match[1], int(match[3], 16)))
    for name, versions in found.items():
        old = [each for each in versions if each[0] <= newest]
        if old:
            version, code, size = max(old)
            yield name, version, code, size, any(each[0] == (2, 34) for each in versions) and name != "__libc_start_main"


def write(folder, soname, entries):
    """Makes one stub library."""
    source, versions = ["\t.text"], {}
    for name, version, code, size in sorted(entries):
        versions.setdefault(version, []).append(name)
        source.append(f"\t.globl {name}\n\t.type {name}, {'@function' if code else '@object'}")
        source.append(f"\t.text\n{name}:\n\t.byte 0" if code else f"\t.bss\n\t.balign 16\n{name}:\n\t.size {name}, {size}\n\t.skip {max(size, 1)}")
    before, script = "", []
    for version in sorted(versions):
        node = "GLIBC_" + ".".join(map(str, version))
        listed = "".join(f" {name};" for name in versions[version])
        script.append(f"{node} {{ global:{listed}{' local: *;' if not before else ''} }}{before};")
        before = f" {node}"
    (folder / "stub.s").write_text("\n".join(source) + '\n\t.section .note.GNU-stack,"",%progbits\n')
    (folder / "stub.map").write_text("\n".join(script) + "\n")
    out = folder / soname
    subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script={folder}/stub.map", "-o", out, folder / "stub.s"], check=True)
    (folder / "stub.s").unlink()
    (folder / "stub.map").unlink()
    return out


def main():
    folder, newest = pathlib.Path(sys.argv[1]).resolve(), number(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    where = {soname: read("cc", f"-print-file-name={soname}").strip() for soname in ("libc.so.6", "libm.so.6")}
    libraries = {soname: [] for soname, _ in MOVED}
    libraries["libc.so.6"] = []
    libraries["libm.so.6"] = [(name, version, code, size) for name, version, code, size, _ in symbols(where["libm.so.6"], newest)]
    for name, version, code, size, moved in symbols(where["libc.so.6"], newest):
        soname = next(soname for soname, names in MOVED if re.match(names, name)) if moved else "libc.so.6"
        libraries[soname].append((name, version, code, size))
    for soname, entries in libraries.items():
        stub = write(folder, soname, entries)
        if soname != "libc.so.6":
            plain = folder / soname.split(".so")[0]
            (folder / f"{plain.name}.so").unlink(missing_ok=True)
            (folder / f"{plain.name}.so").symlink_to(stub.name)
    objects = []
    # Two objects: a shared library has no start, and takes the other only.
    for name in ("shim", "start"):
        objects.append(folder / f"{name}.o")
        flags = ["-O2", "-Wall", "-Werror", "-fPIC", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-g0"]
        subprocess.run(["cc", *flags, "-c", "-o", objects[-1], HERE / f"{name}.c"], check=True)
    (folder / "libshim.a").unlink(missing_ok=True)
    subprocess.run(["ar", "rcsD", folder / "libshim.a", *objects], check=True)
    # The system's own script for -lc, with the stub in the library's place.
    script = pathlib.Path(read("cc", "-print-file-name=libc.so").strip()).read_text()
    script = re.sub(r"\S*/libc\.so\.6", f"{folder}/libc.so.6 {folder}/libshim.a", script)
    (folder / "libc.so").write_text(script)


if __name__ == "__main__":
    main()
