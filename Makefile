# make demo   builds, and tunes a real kernel over an emulated ADSL line (3 minutes after the build)
# make test   everything that CI checks (about half an hour from nothing on two cores)
# make bench  speed, as ratios within one run
# make crosscheck  the statistics against scipy, statsmodels and pingouin; captures against tshark
# make stacks  adapters of lwIP, gVisor, libslirp and QUIC for `windtunnel stacks`, where their tool chains are
# make page-test  the page in headless Chromium
# make page-bench  how quick the page and its server are
CARGO ?= cargo
BIN := target/release/windtunnel
DEMO := target/demo

.PHONY: stacks all page page-test page-bench pictures build demo test lint unit bench crosscheck setup clean

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

demo: build
	@mkdir -p $(DEMO)
	$(BIN) tune --lab adsl --html $(DEMO)/adsl.html --csv $(DEMO)/adsl.csv; status=$$?; test $$status -le 1
	@echo "The report: $(DEMO)/adsl.html"

test:
	@scripts/test.sh

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

unit:
	$(CARGO) test --workspace --locked

bench: build
	$(CARGO) bench --workspace --locked

# Adapters of stacks: gcc with liblwip-dev and libslirp-dev, Go, and cargo once more for QUIC.
stacks:
	@scripts/stacks.sh

crosscheck:
	@scripts/crosscheck/run.sh

clean:
	$(CARGO) clean
