#!/bin/sh
# Compares what `windtunnel analyse` says with scipy, statsmodels and pingouin on random tables, and with tshark on captures. Takes
# some minutes.
set -eu
cd "$(dirname "$0")/../.."
place=target/crosscheck
cargo build --locked --release -p windtunnel
[ -x "$place/bin/python" ] || python3 -m venv "$place"
"$place/bin/pip" install --quiet --requirement scripts/crosscheck/requirements.txt
"$place/bin/python" scripts/crosscheck/crosscheck.py target/release/windtunnel "$@"
exec scripts/crosscheck/capture.sh target/release/windtunnel
