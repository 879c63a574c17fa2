#!/bin/sh
# Builds the adapters of stacks in other languages into target/stacks, each where its tool chain is there; says what the others need.
# Usage: scripts/stacks.sh [NAME…]   default: lwip gvisor slirp quic
set -eu
cd "$(dirname "$0")/.."
place=target/stacks
mkdir -p "$place"
missing=0
built() {
    echo "stacks: $place/windtunnel-stack-$1"
}
lacks() { # stack, what to install
    echo "stacks: $1 isn't built: install $2" >&2
    missing=1
}
in_c() { # stack, its header, its package
    if command -v gcc >/dev/null 2>&1 && [ -f "/usr/include/$2" ]; then
        gcc -O2 -Wall -Wextra -Werror -isystem "/usr/include/$1" -o "$place/windtunnel-stack-$1" "stacks/$1/adapter.c" "-l$1"
        built "$1"
    else
        lacks "$1" "gcc and $3"
    fi
}
for stack in ${*:-lwip gvisor slirp quic}; do
    case $stack in
        # Debian's libraries.
        lwip) in_c lwip lwip/lwip/tcp.h liblwip-dev ;;
        slirp) in_c slirp slirp/libslirp.h libslirp-dev ;;
        # A module of Go, fetched by Go's own tool.
        gvisor)
            if command -v go >/dev/null 2>&1 && (cd stacks/gvisor && go build -trimpath -o "../../$place/windtunnel-stack-gvisor" .); then
                built gvisor
            else
                lacks gvisor "Go 1.23 or later, with a way to its module proxy"
            fi
            ;;
        # A package apart from the workspace, fetched by cargo.
        quic)
            if command -v cargo >/dev/null 2>&1 &&
                cargo build --release --locked --quiet --manifest-path stacks/quic/Cargo.toml --target-dir target/stacks-build; then
                cp target/stacks-build/release/windtunnel-stack-quic "$place/"
                built quic
            else
                lacks quic "cargo, with a way to crates.io"
            fi
            ;;
        *) echo "stacks: there is no adapter of $stack to build" >&2; exit 2 ;;
    esac
done
exit $missing
