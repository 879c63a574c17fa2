#!/usr/bin/env python3
"""Puts an OCI image together from a built program, without a daemon, a registry or a base image: an archive of an OCI layout
(oci-layout, index.json, blobs by SHA-256) that `podman load`, `docker load` and `skopeo copy oci-archive:…` read.

Its one layer has the program, the shared libraries that it needs with their licences, and what looking up names and checking
certificates needs. It runs as user 65532. The same program on the same system gives the same file (SOURCE_DATE_EPOCH).

Usage: image.py PROGRAM VERSION OUT.tar     builds it
       image.py --check OUT.tar [FOLDER]    checks every digest and size; unpacks the layer into FOLDER"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import time

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
USER = 65532
# Looked up by name when the program runs, so that it isn't among what it needs.
PLUGINS = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"]
ETC = {
    "etc/passwd": f"root:x:0:0:root:/root:/sbin/nologin\nwindtunnel:x:{USER}:{USER}:windtunnel:/home/windtunnel:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nwindtunnel:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(program):
    """The shared libraries of a program: as it names them, and where they are here."""
    libraries = dict(re.findall(r"^\s*(?:\S+ => )?(/\S*/([^/\s]+)) \(0x", line)[0][::-1] for line in read("ldd", program).splitlines() if "/" in line)
    folder = pathlib.Path(libraries["libc.so.6"]).parent
    libraries.update({name: str(folder / name) for name in PLUGINS if (folder / name).exists()})
    return libraries


def contents(program):
    """Every file of the layer: its path there, its bytes and its mode."""
    loader = re.search(r"interpreter: (/\S+)\]", read("readelf", "-l", program))[1]
    files = {"usr/bin/windtunnel": (pathlib.Path(program).read_bytes(), 0o755)}
    for name, path in needed(program).items():
        # The loader is where the program asks for it, all others in a folder that it looks through by itself.
        place = loader.lstrip("/") if name == pathlib.Path(loader).name else f"usr/lib/{name}"
        files[place] = (pathlib.Path(path).read_bytes(), 0o755)
    for name, text in ETC.items():
        files[name] = (text.encode(), 0o644)
    certificates = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.exists():
        files["etc/ssl/certs/ca-certificates.crt"] = (certificates.read_bytes(), 0o644)
    root = pathlib.Path(__file__).resolve().parent.parent
    licences = [root / "LICENSE-MIT", root / "LICENSE-APACHE"]
    licences += [path for path in map(pathlib.Path, ("/usr/share/doc/libc6/copyright", "/usr/share/doc/libgcc-s1/copyright")) if path.exists()]
    for path in licences:
        folder = "windtunnel" if path.parent == root else path.parent.name
        files[f"usr/share/doc/{folder}/{path.name}"] = (path.read_bytes(), 0o644)
    return files


def entry(name, epoch, mode, kind=tarfile.REGTYPE, owner=0):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime, info.uid, info.gid = kind, mode, epoch, owner, owner
    return info


def layer(files, epoch):
    """The layer as a tar."""
    folders = {"tmp": 0o1777, "home": 0o755, "home/windtunnel": 0o700, "proc": 0o755, "sys": 0o755, "dev": 0o755}
    for name in files:
        folders.update({str(parent): 0o755 for parent in pathlib.PurePath(name).parents if str(parent) != "."})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(folders):
            tar.addfile(entry(name, epoch, folders[name], tarfile.DIRTYPE, USER if name == "home/windtunnel" else 0))
        for name in sorted(files):
            data, mode = files[name]
            info = entry(name, epoch, mode)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def build(program, version, out):
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or read("git", "log", "-1", "--format=%ct"))
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    blobs = {}

    def blob(data, kind, **more):
        blobs[digest(data)] = data
        return {"mediaType": kind, "digest": digest(data), "size": len(data), **more}

    def document(value, kind, **more):
        return blob(json.dumps(value, indent=1, sort_keys=True).encode(), kind, **more)

    tar = layer(contents(program), epoch)
    labels = {
        "org.opencontainers.image.title": "windtunnel",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.created": created,
    }
    where = {"architecture": ARCHITECTURES[platform.machine()], "os": "linux"}
    config = {
        **where,
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/bin/windtunnel"],
            "Cmd": ["--help"],
            "WorkingDir": "/home/windtunnel",
            "Env": ["PATH=/usr/bin", "HOME=/home/windtunnel"],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(tar)]},
        "history": [{"created": created, "created_by": "scripts/image.py"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": document(config, CONFIG),
        "layers": [blob(gzip.compress(tar, 9, mtime=0), LAYER)],
        "annotations": labels,
    }
    # A tag allows neither ~ nor +.
    tag = re.sub(r"[^\w.-]", "-", version)
    name = {"org.opencontainers.image.ref.name": tag}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [document(manifest, MANIFEST, platform=where, annotations=name)]}
    parts = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index, indent=1, sort_keys=True).encode()}
    parts.update({f"blobs/{name.replace(':', '/')}": data for name, data in blobs.items()})
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in ("blobs", "blobs/sha256"):
            archive.addfile(entry(folder, epoch, 0o755, tarfile.DIRTYPE))
        for part in sorted(parts):
            info = entry(part, epoch, 0o644)
            info.size = len(parts[part])
            archive.addfile(info, io.BytesIO(parts[part]))


def check(image, folder=None):
    """Follows the layout from its index to the layer; ends with what doesn't fit."""
    with tarfile.open(image) as archive:
        parts = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    for name, data in parts.items():
        if name.startswith("blobs/") and digest(data) != name.removeprefix("blobs/").replace("/", ":"):
            sys.exit(f"image: {name} isn't what its name says")
    used = {"oci-layout", "index.json"}

    def follow(link, kind):
        name = "blobs/" + link["digest"].replace(":", "/")
        data = parts.get(name)
        if data is None or len(data) != link["size"] or link["mediaType"] != kind:
            sys.exit(f"image: {name} is missing, or has another size or kind")
        used.add(name)
        return data

    if json.loads(parts["oci-layout"])["imageLayoutVersion"] != "1.0.0":
        sys.exit("image: another version of the layout")
    (first,) = json.loads(parts["index.json"])["manifests"]
    manifest = json.loads(follow(first, MANIFEST))
    config = json.loads(follow(manifest["config"], CONFIG))
    tars = [gzip.decompress(follow(each, LAYER)) for each in manifest["layers"]]
    if [digest(tar) for tar in tars] != config["rootfs"]["diff_ids"]:
        sys.exit("image: a layer isn't what the configuration says")
    if used != set(parts):
        sys.exit(f"image: nobody refers to {', '.join(sorted(set(parts) - used))}")
    if folder:
        for tar in tars:
            with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
                opened.extractall(folder)
    print(f"image: {len(parts)} files, {sum(map(len, parts.values())) / 1e6:.1f} MB, unpacked {sum(map(len, tars)) / 1e6:.1f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"] and len(sys.argv) in (3, 4):
        check(*sys.argv[2:])
    elif len(sys.argv) == 4:
        build(*sys.argv[1:])
    else:
        sys.exit(__doc__)
