#!/bin/sh
# Records downloads in the lab and lays the figures of `windtunnel analyse` beside those of tshark's TCP analysis.
# Needs tshark (apt-get install tshark) and python3. Usage: scripts/crosscheck/capture.sh [BINARY]
set -eu
cd "$(dirname "$0")/../.."
binary=${1:-target/release/windtunnel}
command -v tshark >/dev/null || { echo "tshark is missing: apt-get install --no-install-recommends tshark" >&2; exit 3; }
[ -x "$binary" ] || cargo build --locked --release -p windtunnel
exec python3 scripts/crosscheck/capture.py "$binary"
