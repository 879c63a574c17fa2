#!/bin/sh
# Feeds what far ends, captures and profiles say with random bytes, guided by coverage; ends at the first crash. With the stable tool
# chain and without sanitizers; `cargo +nightly fuzz run --fuzz-dir fuzz/load TARGET` has those.
# Usage: scripts/fuzz-load.sh [SECONDS for each target] [TARGET…]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- load_control load_iperf3 load_ftp load_http load_capture load_profile
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cdebug-assertions -Ccodegen-units=1"
for target; do
    cargo build --quiet --manifest-path fuzz/load/Cargo.toml --target-dir target/fuzz-load --bin "$target" \
        --target "$(rustc -vV | sed -n 's/^host: //p')" --release
    mkdir -p "target/fuzz-load/corpus/$target"
    echo "== $target"
    "target/fuzz-load/$(rustc -vV | sed -n 's/^host: //p')/release/$target" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 -artifact_prefix=target/fuzz-load/ "target/fuzz-load/corpus/$target"
done
