# make demo   builds, finds a known gain in about a minute, and less delay on an ADSL line in four
# make test   everything that CI checks (20 to 27 minutes on two cores), and where the time went
# make bench  speed, as ratios within one run
# make crosscheck  the statistics against scipy, statsmodels and pingouin; captures against tshark
# make truth  the statistics in full: false claims on every kind of noise, and the power table (several hours)
# make stacks  adapters of lwIP, gVisor, libslirp and QUIC for `windtunnel stacks`, where their tool chains are
# make kill-soak  5,000 kills of what changes settings (TRIALS=N SEED=N): does everything come back? (an hour or more)
# make packages  a .deb, a tarball and SHA256SUMS in target/packages/out
# make packages-test  proves them on a fresh minimal Debian (root; three to five minutes)
# make effect  what hangs on chance or on a quiet machine: verdicts' gains against curl's (SACK, timestamps, MSS, MTU, ...), cells
# make page-test  the page in headless Chromium
# make page-bench  how quick the page and its server are
CARGO ?= cargo
BIN := target/release/windtunnel
DEMO := target/demo

.PHONY: effect packages packages-test kill-soak stacks all page page-test page-bench pictures build demo test lint unit bench truth crosscheck setup clean

all: build

setup:
	@scripts/setup.sh build

# The page goes into the program where Node is there; without it the program still builds, and only lacks the page.
page:
	@scripts/build-page.sh

page-test: build
	@scripts/page.sh $(BIN)

page-bench: build
	cd ui && WINDTUNNEL=$(CURDIR)/$(BIN) npm run --silent bench
	$(CARGO) bench -p windtunnel --bench web --locked

pictures: build
	@scripts/pictures.sh $(BIN)

build: setup page
	$(CARGO) build --release --locked

packages: setup
	@scripts/packages.sh

packages-test:
	@scripts/packages-test.sh

demo: build
	@mkdir -p $(DEMO)
	$(BIN) tune --lab transatlantic --workload page --knobs initcwnd --html $(DEMO)/pages.html; test $$? -le 1
	$(BIN) tune --lab adsl --html $(DEMO)/adsl.html --csv $(DEMO)/adsl.csv; test $$? -le 1
	@echo "The reports: $(DEMO)/pages.html $(DEMO)/adsl.html"

test:
	@scripts/test.sh

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

unit:
	$(CARGO) test --workspace --locked

bench: build
	$(CARGO) bench --workspace --locked

truth:
	$(CARGO) test --release -p wt-experiment --locked --test truth -- --include-ignored --nocapture
	$(CARGO) test --release -p wt-traffic --locked --test traffic in_full -- --ignored --nocapture
	$(CARGO) test --release -p wt-report -p wt-tune --locked --lib in_full -- --ignored --nocapture

effect:
	$(CARGO) test --workspace --locked --test lab -- --ignored --test-threads 1 effect:: probe::a_line_of_cells

# Adapters of stacks: gcc with liblwip-dev and libslirp-dev, Go, and cargo once more for QUIC.
stacks:
	@scripts/stacks.sh

crosscheck:
	@scripts/crosscheck/run.sh

kill-soak: build
	scripts/kill-soak.py $(BIN) $(or $(TRIALS),5000) $(SEED)

clean:
	$(CARGO) clean
