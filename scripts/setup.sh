#!/bin/sh
# Installs what building and testing need on Debian or a relative of it, or says what to install.
# Usage: scripts/setup.sh build|test
set -eu
want=${1:-build}
PATH=$PATH:/usr/sbin:/sbin

# command it gives : package that has it
tools="cc:gcc make:make git:git"
case $want in
    build) ;;
    test)
        tools="$tools nft:nftables ip:iproute2 ping:iputils-ping tracepath:iputils-tracepath traceroute:traceroute mtr:mtr-tiny ss:iproute2 curl:curl iperf3:iperf3 unshare:util-linux setpriv:util-linux chrt:util-linux"
        # Runs the tests.
        tools="$tools /usr/bin/python3:python3"
        # The Python package is proved with these, in an environment of its own.
        tools="$tools /usr/lib/python3/dist-packages/pandas/__init__.py:python3-pandas /usr/lib/python3/dist-packages/pytest/__init__.py:python3-pytest mypy:mypy nsenter:util-linux faketime:faketime"
        # What the notebook shows, and who runs it.
        tools="$tools /usr/lib/python3/dist-packages/nbclient/__init__.py:python3-nbclient /usr/lib/python3/dist-packages/ipykernel/__init__.py:python3-ipykernel /usr/lib/python3/dist-packages/matplotlib/__init__.py:python3-matplotlib"
        # Exports are read back by these.
        tools="$tools sysctl:procps netplan:netplan.io hivexregedit:libwin-hivex-perl /lib/systemd/systemd-networkd:systemd"
        # Far ends that aren't ours.
        tools="$tools nginx:nginx-light varnishd:varnish vsftpd:vsftpd /usr/lib/python3/dist-packages/pyftpdlib/__init__.py:python3-pyftpdlib openssl:openssl wget:wget sshd:openssh-server scp:openssh-client"
        # Stacks of others.
        tools="$tools /usr/include/lwip/lwip/tcp.h:liblwip-dev /usr/include/slirp/libslirp.h:libslirp-dev linux.uml:user-mode-linux"
        # The page is built, and driven in a browser.
        tools="$tools node:nodejs npm:npm chromium:chromium"
        ;;
    *) echo "usage: $0 build|test" >&2; exit 2 ;;
esac

missing=
# The journal of many hosts. Its package has the version in its path, and makes no cluster that runs: see policy-rc.d below.
if [ "$want" = test ]; then
    set -- /usr/lib/postgresql/*/bin/initdb
    [ -f "$1" ] || missing=" postgresql"
fi
for pair in $tools; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || [ -f "${pair%%:*}" ] || missing="$missing ${pair##*:}"
done
# NetworkManager's library, without its daemon, for Debian's own Python.
if [ "$want" = test ] && ! /usr/bin/python3 -c 'import gi; gi.require_version("NM", "1.0")' 2>/dev/null; then
    missing="$missing python3-gi gir1.2-nm-1.0"
fi
# A virtual environment with pip in it.
if [ "$want" = test ] && ! /usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null; then
    missing="$missing python3-venv"
fi
# The C library's headers come apart from the compiler.
if command -v cc >/dev/null 2>&1 && ! echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1; then
    missing="$missing libc6-dev"
fi
if [ -n "$missing" ]; then
    case $missing in *gcc*) missing="$missing libc6-dev" ;; esac
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing$missing" >&2
        apt-get update -q >/dev/null
        # The tests start servers of their own; a package must not start one of the host's (see invoke-rc.d(8)).
        policy=/usr/sbin/policy-rc.d
        if [ ! -e $policy ]; then
            printf '#!/bin/sh\nexit 101\n' > $policy
            chmod 755 $policy
            trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        fi
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >/dev/null
        for pair in nginx:nginx-light varnish:varnish varnishncsa:varnish vsftpd:vsftpd ssh:openssh-server; do
            case $missing in *"${pair##*:}"*) systemctl disable -q "${pair%%:*}" 2>/dev/null || true ;; esac
        done
    else
        echo "setup: missing:$missing" >&2
        echo "setup: install them, for example: sudo apt-get install --no-install-recommends$missing" >&2
        exit 3
    fi
fi

# Not needed, but without them something is left out: clang compiles the BPF congestion controls, bpftool checks in tests that
# none is left behind in the kernel.
wanted=
command -v clang >/dev/null 2>&1 || wanted="$wanted clang"
[ "$want" = build ] || command -v bpftool >/dev/null 2>&1 || wanted="$wanted bpftool"
if [ -n "$wanted" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing$wanted" >&2
        apt-get update -q >/dev/null
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $wanted >/dev/null ||
            echo "setup: going on without$wanted: see windtunnel doctor" >&2
    else
        echo "setup: going on without$wanted (congestion controls of our own): install with sudo apt-get install$wanted" >&2
    fi
fi

if ! command -v cargo >/dev/null 2>&1; then
    [ -x "$HOME/.cargo/bin/cargo" ] || {
        echo "setup: no Rust tool chain: install Rust 1.89 or later with rustup (https://rustup.rs)" >&2
        exit 3
    }
    echo "setup: cargo is in ~/.cargo/bin, which isn't in PATH: run . ~/.cargo/env" >&2
    exit 3
fi

if [ "$want" = test ]; then
    for part in clippy fmt; do
        cargo $part --version >/dev/null 2>&1 || {
            echo "setup: cargo $part is missing: rustup component add clippy rustfmt" >&2
            exit 3
        }
    done
fi
