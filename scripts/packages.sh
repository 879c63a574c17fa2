#!/bin/sh
# Builds packages into target/packages/out: a .deb, another one with adapters of TCP/IP stacks where their libraries are, a
# tarball, an OCI image, what is inside (a CycloneDX list) and SHA256SUMS. The same commit gives the same files, in whatever
# folder it is built. The program starts with glibc 2.28 and newer; one that needs a newer one isn't packed.
# Usage: scripts/packages.sh [PROGRAM]; with PROGRAM nothing of the program is compiled, and its glibc is only told.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$root/target/packages
oldest=2.28
for tool in dpkg-deb:dpkg dpkg-shlibdeps:dpkg-dev strip:binutils xz:xz-utils gzip:gzip python3:python3; do
    command -v "${tool%%:*}" >/dev/null || { echo "packages: ${tool%%:*} is missing: sudo apt-get install ${tool##*:}" >&2; exit 3; }
done
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

if [ $# -gt 0 ]; then
    program=$1
else
    WINDTUNNEL_PAGE=must scripts/build-page.sh
    cargo_home=${CARGO_HOME:-$HOME/.cargo}
    python3 scripts/older-glibc/stubs.py "$work/stubs" "$oldest"
    triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
    # Nothing in the program may tell where it was built.
    RUSTFLAGS="--remap-path-prefix=$root=/windtunnel --remap-path-prefix=$cargo_home=/cargo" CARGO_TARGET_DIR="$work/build" \
        env "CARGO_TARGET_${triple}_LINKER=$root/scripts/older-glibc/gcc" WINDTUNNEL_STUBS="$work/stubs" \
        cargo build --release --locked -p windtunnel
    program=$work/build/release/windtunnel
fi

newest=$(objdump -T "$program" | grep -o 'GLIBC_2[0-9.]*' | sort -uV | tail -n 1)
if [ "$(printf 'GLIBC_%s\n%s\n' "$oldest" "$newest" | sort -V | tail -n 1)" = "GLIBC_$oldest" ]; then
    echo "packages: the program asks for $newest at most" >&2
elif [ $# -gt 0 ]; then
    echo "packages: $program needs $newest; one that scripts/packages.sh builds itself needs GLIBC_$oldest" >&2
else
    echo "packages: the program needs $newest, more than GLIBC_$oldest: objdump -T $program | grep $newest" >&2
    exit 1
fi

# 0.1.0, and for what isn't a release the commit's day and name: 0.1.0~git20261123.abcdef0 comes before 0.1.0.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
if ! git describe --exact-match --tags HEAD >/dev/null 2>&1; then
    version="$version~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).$(git rev-parse --short=7 HEAD)"
fi
arch=$(dpkg --print-architecture)
out=$work/out stage=$work/stage
rm -rf "$out" "$stage" "$work/list" "$work/man"
mkdir -p "$out" "$stage" "$work/man" "$work/list"

echo "packages: windtunnel $version for $arch" >&2
install -D -m 755 "$program" "$stage/usr/bin/windtunnel"
strip --strip-unneeded --remove-section=.comment "$stage/usr/bin/windtunnel"
"$stage/usr/bin/windtunnel" self manual "$work/man"
"$stage/usr/bin/windtunnel" self completions "$work/man"
for page in "$work/man"/*.1; do
    install -D -m 644 "$page" "$stage/usr/share/man/man1/$(basename "$page")"
    gzip -9n "$stage/usr/share/man/man1/$(basename "$page")"
done
install -D -m 644 "$work/man/windtunnel.bash" "$stage/usr/share/bash-completion/completions/windtunnel"
install -D -m 644 "$work/man/_windtunnel" "$stage/usr/share/zsh/vendor-completions/_windtunnel"
install -D -m 644 "$work/man/windtunnel.fish" "$stage/usr/share/fish/vendor_completions.d/windtunnel.fish"
for unit in serve agent web traffic@; do
    install -D -m 644 packaging/windtunnel-$unit.service "$stage/lib/systemd/system/windtunnel-$unit.service"
done
install -D -m 644 packaging/windtunnel-serve.default "$stage/etc/default/windtunnel-serve"
papers() { # the package, what changed, where
    install -d "$3/usr/share/doc/$1"
    # Debian's form of the changelog: one entry that leads to ours.
    printf '%s (%s) unstable; urgency=medium\n\n  * %s\n\n -- The Windtunnel authors <maintainers@windtunnel.invalid>  %s\n' \
        "$1" "$version" "$2" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9nc > "$3/usr/share/doc/$1/changelog.gz"
    {
        cat packaging/deb/copyright
        echo "License: MIT or Apache-2.0"
        echo " Either of these, as you like."
        echo " ."
        sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT
        echo " ."
        echo " On Debian the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0."
    } > "$3/usr/share/doc/$1/copyright"
    chmod 644 "$3/usr/share/doc/$1"/*
}
papers windtunnel "What changed stands in NEWS.md.gz." "$stage"
gzip -9nc CHANGELOG.md > "$stage/usr/share/doc/windtunnel/NEWS.md.gz"
chmod 644 "$stage/usr/share/doc/windtunnel/NEWS.md.gz"

# The libraries that the program needs, as Debian names their packages.
mkdir -p "$work/list/debian"
printf 'Source: windtunnel\n\nPackage: windtunnel\nArchitecture: any\n' > "$work/list/debian/control"
needs() { (cd "$work/list" && dpkg-shlibdeps -O "$@" 2>/dev/null | sed -n 's/^shlibs:Depends=//p'); }
sealed() { # what is packed, into which file: sums, one date for all
    (cd "$1" && find . -type f ! -path './DEBIAN/*' -printf '%P\n' | sort | xargs md5sum) > "$work/list/md5sums"
    install -m 644 "$work/list/md5sums" "$1/DEBIAN/md5sums"
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$1" "$2" >/dev/null
}
install -d -m 755 "$stage/DEBIAN"
cat > "$stage/DEBIAN/control" <<END
Package: windtunnel
Version: $version
Architecture: $arch
Maintainer: The Windtunnel authors <maintainers@windtunnel.invalid>
Section: net
Priority: optional
Installed-Size: $(du -k -s --apparent-size "$stage" | cut -f1)
Depends: $(needs "$stage/usr/bin/windtunnel")
Recommends: iproute2, curl
Suggests: nftables, chromium, windtunnel-stacks
Description: finds the TCP/IP settings that make a connection fastest
 Windtunnel varies TCP/IP settings in random order over an emulated or a real
 path, shows whether the difference is real with statistics that hold however
 long one watches, and applies what won so that it can be undone.
 .
 It also probes paths (MTU, hops, first windows), predicts transfers by a model
 of Linux TCP, compares TCP stacks, and serves a page on loopback.
END
echo /etc/default/windtunnel-serve > "$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 packaging/deb/$script "$stage/DEBIAN/$script"; done
sealed "$stage" "$out/windtunnel_${version}_$arch.deb"

# Adapters of other stacks: those that can be built here, in a package of their own, since they need libraries.
stacks=$work/stage-stacks adapters=
rm -rf "$stacks"
for stack in lwip slirp quic; do
    if RUSTFLAGS="--remap-path-prefix=$root=/windtunnel --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" scripts/stacks.sh $stack >&2; then
        install -D -m 755 "target/stacks/windtunnel-stack-$stack" "$stacks/usr/libexec/windtunnel/windtunnel-stack-$stack"
        strip --strip-unneeded --remove-section=.comment "$stacks/usr/libexec/windtunnel/windtunnel-stack-$stack"
        adapters="$adapters $stack"
    fi
done
if [ -n "$adapters" ]; then
    papers windtunnel-stacks "What changed stands in NEWS.md.gz of windtunnel." "$stacks"
    install -d -m 755 "$stacks/DEBIAN"
    cat > "$stacks/DEBIAN/control" <<END
Package: windtunnel-stacks
Source: windtunnel
Version: $version
Architecture: $arch
Maintainer: The Windtunnel authors <maintainers@windtunnel.invalid>
Section: net
Priority: optional
Installed-Size: $(du -k -s --apparent-size "$stacks" | cut -f1)
Depends: windtunnel, $(needs "$stacks"/usr/libexec/windtunnel/*)
Recommends: user-mode-linux
Description: other TCP/IP stacks for windtunnel to compare
 Adapters by which windtunnel compares TCP/IP stacks with the kernel's over the
 same path, and runs programs through them:$adapters.
 .
 The kernel's own stack and smoltcp are built into windtunnel; user-mode-linux
 brings an older Linux.
END
    sealed "$stacks" "$out/windtunnel-stacks_${version}_$arch.deb"
fi

# The tarball has the same files without Debian's.
name=windtunnel-$version-$(uname -m)-linux-gnu
mkdir -p "$work/list/$name"
cp -a "$stage/usr" "$work/list/$name/"
rm -rf "$work/list/$name/usr/share/doc"
mkdir -p "$work/list/$name/systemd"
cp -a packaging/windtunnel-*.service packaging/windtunnel-serve.default "$work/list/$name/systemd/"
cp -a README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$work/list/$name/"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work/list" -cf - "$name" | xz -T1 -6 > "$out/$name.tar.xz"

python3 scripts/sbom.py "$version" > "$out/$name.cdx.json"
python3 scripts/image.py "$stage/usr/bin/windtunnel" "$version" "$out/$name.oci.tar"
(cd "$out" && sha256sum -- *.deb *.tar *.tar.xz *.json > SHA256SUMS)
# A folder that apt can use: deb [trusted=yes] file:FOLDER ./
(cd "$out" && dpkg-scanpackages --multiversion . 2>/dev/null | gzip -9nc > Packages.gz)
ls -l "$out" >&2
