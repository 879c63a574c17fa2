#!/bin/sh
# The whole test: format, lints, the page, adapters of stacks, and every test, as an ordinary user and, where we are root, as root
# what needs that. Ends with where the time went.
set -eu
cd "$(dirname "$0")/.."
umask 022
began=$(date +%s)
steps=
step() {
    now=$(date +%s)
    [ -z "${step:-}" ] || steps="$steps$(printf '%6d s  %s' $((now - since)) "$step")
"
    since=$now step=$*
    printf '\n== %s\n' "$*"
}

# What a machine may lack: a test that lacks anything else fails, where CI or WINDTUNNEL_TESTS=all is set. Root has all the rest.
#   virtual-kernel  a User-Mode Linux in virtual time takes ten minutes to build (scripts/build-uml.sh); WINDTUNNEL_KERNEL names it
[ -n "${WINDTUNNEL_KERNEL:-}" ] || WINDTUNNEL_LACKS=${WINDTUNNEL_LACKS:+$WINDTUNNEL_LACKS,}virtual-kernel
# Whom root runs most tests as lacks on purpose, and scripts/tests.conf has the same tests again for root:
#   tun  /dev/net/tun is closed: the lab takes veth
WINDTUNNEL_LACKS_NOBODY=${WINDTUNNEL_LACKS_NOBODY:-tun}
if [ "$(id -u)" = 0 ]; then
    WINDTUNNEL_TESTS=${WINDTUNNEL_TESTS:-all}
else
    # An ordinary user's make test can't have what needs root: programs in the kernel, raw sockets, mounts, servers that step down.
    WINDTUNNEL_LACKS=${WINDTUNNEL_LACKS:+$WINDTUNNEL_LACKS,}tun,bpf,net-raw,sys-admin,root
fi
export WINDTUNNEL_LACKS WINDTUNNEL_LACKS_NOBODY WINDTUNNEL_TESTS="${WINDTUNNEL_TESTS:-}"

step "what building and testing need"
scripts/setup.sh build
scripts/setup.sh test

# Packages apart from the workspace: QUIC's adapter, compiled into the same folder, and what is fuzzed.
quic="--locked --manifest-path stacks/quic/Cargo.toml --target-dir target"
fuzz="--manifest-path fuzz/Cargo.toml"

step "format, and the page beside adapters of stacks"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The page is part of the program, so it comes first.
WINDTUNNEL_PAGE=must scripts/build-page.sh >"$log" 2>&1 &
page=$!
/usr/bin/python3 scripts/links.py
/usr/bin/python3 scripts/results.py --check
cargo fmt --all --check
cargo fmt --check --manifest-path stacks/quic/Cargo.toml
# shellcheck disable=SC2086
cargo fmt --check $fuzz
# The lock of what is fuzzed must follow the crates.
# shellcheck disable=SC2086
cargo metadata --locked --format-version 1 $fuzz >/dev/null
scripts/stacks.sh lwip slirp
# shellcheck disable=SC2086
cargo build $quic
cp target/debug/windtunnel-stack-quic target/stacks/
wait $page || { cat "$log" >&2; exit 1; }

# Lints and doctests are compiled while tests wait, at times when no test wants the processors.
# shellcheck disable=SC2086
step "tests, and beside them lints and the page in headless Chromium"
code=0
scripts/run-tests.py --and stacks/quic/Cargo.toml \
    --beside "lints" "cargo clippy --workspace --all-targets --locked -- -D warnings" \
    --beside "lints of QUIC's adapter" "cargo clippy --all-targets $quic -- -D warnings" \
    --beside "examples in the documentation" "cargo test --workspace --locked --doc" \
    --job "the page in headless Chromium" "scripts/page.sh target/debug/windtunnel" \
    --job "the Python package" "scripts/python.sh test target/debug/windtunnel" || code=$?

step "the end"
printf '%s%6d s  all\n' "$steps" $((since - began))
exit $code
