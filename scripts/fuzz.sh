#!/bin/sh
# Feeds a parser with bytes that libFuzzer makes up. Usage: scripts/fuzz.sh TARGET|all [SECONDS of each, 60 if left out]
# It needs clang++ or g++, and no nightly tool chain; with one, `cargo fuzz run TARGET` does the same with AddressSanitizer.
set -eu
cd "$(dirname "$0")/../fuzz"
[ $# -ge 1 ] || { echo "usage: scripts/fuzz.sh TARGET|all [SECONDS]" >&2; exit 2; }
seconds=${2:-60}
host=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# What only fuzzing may see of a crate.
coverage="$coverage --cfg fuzzing -Cdebug-assertions"
RUSTFLAGS="$coverage" cargo build --release --locked --target "$host"
if [ "$1" = all ]; then
    set -- packets edits answers machines framing control iperf3 ftp http capture profile table scenario import journal object host har http2 devtools adapter
else
    set -- "$1"
fi
for target in "$@"; do
    mkdir -p "corpus/$target" "artifacts/$target"
    "target/$host/release/$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
        -artifact_prefix="artifacts/$target/" "corpus/$target"
done
