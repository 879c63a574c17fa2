#!/bin/sh
# The guide, the results and the decisions as a site with a search, in target/site/html. Building and testing the program don't need it.
# mdBook comes from crates.io, unless it is there: some minutes, once.
set -eu
cd "$(dirname "$0")/.."
tools=$PWD/target/tools
PATH=$tools/bin:$PATH
command -v mdbook >/dev/null || cargo install mdbook --version '^0.4' --locked --no-default-features --features search --root "$tools"
site=target/site
rm -rf "$site"
mkdir -p "$site/src"
cp packaging/site/book.toml "$site/"
# All that pages link to, where it lies here: then links lead to the same places.
git ls-files '*.md' docs studies packaging | tar -cf - -T - | tar -xf - -C "$site/src"
cp packaging/site/SUMMARY.md "$site/src/"
mdbook build "$site"
# mdBook writes README.md as index.html, and leaves links to README.html.
find "$site/html" -name index.html | while read -r page; do cp "$page" "$(dirname "$page")/README.html"; done
echo "$site/html/index.html"
