#!/bin/sh
# The whole test: format, lints, tests as this user, and the lab once more as an ordinary user when we are root.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh build
scripts/setup.sh test

step() { printf '\n== %s\n' "$*"; }

step "the page"
WINDTUNNEL_PAGE=must scripts/build-page.sh

step "format and lints"
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings

step "adapters of stacks in C"
scripts/stacks.sh lwip slirp

step "tests"
cargo test --workspace --locked

step "the page in headless Chromium"
scripts/page.sh target/debug/windtunnel

if [ "$(id -u)" = 0 ]; then
    step "the lab's tests as an ordinary user"
    scripts/as-nobody.sh
fi
