#!/bin/sh
# The page in headless Chromium, in a network namespace of its own, so that nothing of this machine is changed.
# Usage: scripts/page.sh BINARY
set -eu
cd "$(dirname "$0")/../ui"
binary=$(realpath "${1:-../target/release/windtunnel}" 2>/dev/null || realpath "$OLDPWD/$1")
[ -d node_modules ] || npm ci --no-audit --no-fund --loglevel=error
# shellcheck disable=SC2016
WINDTUNNEL=$binary exec timeout 1800 unshare -Urnm sh -c 'PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; exec npm run --silent e2e'
