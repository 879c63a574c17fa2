#!/bin/sh
# Builds the adapters of stacks in other languages into target/stacks, each where its tool chain is there; says what the others need.
set -eu
cd "$(dirname "$0")/.."
place=target/stacks
mkdir -p "$place"
missing=0
lacks() { # stack, what to install
    echo "stacks: $1 isn't built: install $2" >&2
    missing=1
}
# lwIP: Debian's library.
if command -v gcc >/dev/null 2>&1 && [ -f /usr/include/lwip/lwip/tcp.h ]; then
    gcc -O2 -Wall -Wextra -Werror -isystem /usr/include/lwip -o "$place/windtunnel-stack-lwip" stacks/lwip/adapter.c -llwip
    echo "stacks: $place/windtunnel-stack-lwip"
else
    lacks lwip "gcc and liblwip-dev"
fi
# gVisor: a module of Go, fetched by Go's own tool.
if command -v go >/dev/null 2>&1 && (cd stacks/gvisor && go build -trimpath -o "../../$place/windtunnel-stack-gvisor" .); then
    echo "stacks: $place/windtunnel-stack-gvisor"
else
    lacks gvisor "Go 1.23 or later, with a way to its module proxy"
fi
exit $missing
