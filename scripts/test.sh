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
# What is fuzzed lies apart from the workspace: its lock must follow the crates.
cargo fmt --check --manifest-path fuzz/Cargo.toml
cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null

step "adapters of stacks in C, and QUIC's with its own tests"
scripts/stacks.sh lwip slirp
# A package apart from the workspace; what both need is compiled once more for it, and no optimised build is made.
quic="--locked --manifest-path stacks/quic/Cargo.toml --target-dir target"
cargo fmt --check --manifest-path stacks/quic/Cargo.toml
# shellcheck disable=SC2086
cargo clippy --all-targets $quic -- -D warnings
# shellcheck disable=SC2086
cargo test $quic
# shellcheck disable=SC2086
cargo build $quic
cp target/debug/windtunnel-stack-quic target/stacks/

step "tests"
cargo test --workspace --locked

step "the page in headless Chromium"
scripts/page.sh target/debug/windtunnel

if [ "$(id -u)" = 0 ]; then
    step "the lab's tests as an ordinary user"
    scripts/as-nobody.sh
fi
