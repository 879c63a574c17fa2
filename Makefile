# make demo   builds, finds a known gain in about a minute, and less delay on an ADSL line in four
# make test   everything that CI checks (19 to 27 minutes on two cores), and where the time went
# make bench  speed, as ratios within one run
# make results  the same, written down: docs/results/measured.md as ranges, beside goals (half an hour on an idle machine; ONLY=WORDS)
# make crosscheck  the statistics against scipy, statsmodels and pingouin; captures against tshark
# make truth  the statistics in full: false claims on every kind of noise, and the power table (an hour or more)
# make probe-matrix  what can be wrong with a path's MTU, 20 runs in each of six modes (two hours; RUNS=N ONLY=TEXT)
# make first-window-matrix  servers that trickle, stream or write in pieces: is each "exactly" of their first windows right? (half an hour)
# make stacks  adapters of lwIP, gVisor, libslirp and QUIC for `windtunnel stacks`, where their tool chains are
# make studies  five old studies redone in short form, and one page of what may be concluded (20 minutes on two idle cores)
# make studies-full  the same with as many rounds as their questions take (a day)
# make virtual  the kernel for --virtual, from Debian's source (ten minutes on two idle cores, 2 GB), in target/uml
# make virtual-test  what runs on it, `tune` of the dial-up line among them (minutes; every night)
# make model-matrix  2 to 10 flows that share a path, in the model and on the kernel of make virtual: 70 mixes (half an hour; docs/results/model.md tells which have twelve draws)
# make scale  how cost grows with the work: docs/results/scale.html (a quarter of an hour, 15 GB in the folder of temporary files)
# make kill-soak  5,000 kills of what changes settings (KILLS=N SEED=N): does everything come back? (an hour or more)
# make fleet-soak  eight agents on three links, killed or stopped every second, their server killed twice and away (root; SECONDS=N; nine minutes)
# make slurm-test  a sweep as an array of Debian's Slurm (root, mmdebstrap; ten minutes on two idle cores)
# make sweep-bench  a table of 10^6 predictions on one processor and on all (five minutes)
# make fleet-bench  how fast a fleet's server is, and what an idle agent costs (some minutes)
# make traffic-edges  nginx reloads, SYN cookies, moved servers and a flood of 100,000 resets under `windtunnel traffic` (root, nginx)
# make traffic-trap  cubic beside bbr by connection and by slots: the trap of A/B tests (root, 15 minutes)
# make traffic-soak  200,000 real connections under `windtunnel traffic`: accounts, kills, cost (root, nginx; CONNECTIONS=N KILLS=N)
# make site  the guide as a site with a search, in target/site/html (mdBook from crates.io; some minutes the first time)
# make packages  a .deb, a tarball for glibc 2.28 and newer, an OCI image and SHA256SUMS in target/packages/out
# make packages-test  proves them on a fresh minimal Debian (root; six minutes or so)
# make python  the Python package as a wheel in target/python, from the built program
# make python-test  proves it in a fresh environment (a minute)
# make adoption-bench  what Python costs on top of the program, and how quickly metrics are read during a trial (needs python3-pandas)
# make ansible-test  the Ansible collection in network namespaces (needs ansible-core; root for a play that cuts its own connection)
# make effect  what depends on chance or on a quiet machine: verdicts' gains against curl's (SACK, timestamps, MSS, MTU, ...), cells
# make page-test  the page in headless Chromium
# make page-bench  how quick the page and its server are
CARGO ?= cargo
# What is built is looked for in the checkout, so a folder that cargo is told to build into elsewhere doesn't count here.
unexport CARGO_TARGET_DIR
BIN := target/release/windtunnel
DEMO := target/demo

.PHONY: results site adoption-bench sweep-bench probe-matrix first-window-matrix effect ansible-test python python-test packages packages-test kill-soak stacks all page page-test page-bench pictures build demo test lint unit bench truth crosscheck setup clean virtual virtual-test studies studies-full traffic-soak fleet-soak slurm-test fleet-bench model-matrix scale traffic-edges traffic-trap

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

site:
	@scripts/site.sh

packages: setup
	@scripts/packages.sh

packages-test:
	@scripts/packages-test.sh

python: build
	@scripts/python.sh wheel $(BIN)

python-test: build
	@scripts/python.sh test $(BIN)

sweep-bench: build
	scripts/sweep-bench.py $(BIN)

adoption-bench: build
	scripts/adoption-bench.py $(BIN)

ansible-test: build
	@scripts/ansible.sh $(BIN)

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

results: build
	scripts/results.py $(ONLY)

truth:
	$(CARGO) test --release -p wt-experiment --locked --test truth -- --include-ignored --nocapture
	$(CARGO) test --release -p wt-experiment --locked --lib in_full -- --ignored --nocapture
	$(CARGO) test --release -p wt-traffic --locked --test traffic in_full -- --ignored --nocapture
	$(CARGO) test --release -p wt-report -p wt-tune --locked --lib in_full -- --ignored --nocapture

probe-matrix: build
	scripts/probe-matrix.py $(BIN) --runs $(or $(RUNS),20) --only "$(ONLY)"

first-window-matrix: build
	scripts/first-window-matrix.py $(BIN)

effect:
	$(CARGO) test --workspace --locked --test lab -- --ignored --test-threads 1 effect:: probe::a_line_of_cells probe::the_narrowest_link

# Adapters of stacks: gcc with liblwip-dev and libslirp-dev, Go, and cargo once more for QUIC.
stacks:
	@scripts/stacks.sh

crosscheck:
	@scripts/crosscheck/run.sh

kill-soak: build
	scripts/kill-soak.py $(BIN) $(or $(KILLS),5000) $(SEED)

fleet-soak: build
	scripts/fleet-soak.py $(BIN) $(or $(SECONDS),300)

slurm-test: build
	scripts/slurm-test.sh $(BIN)

fleet-bench: build
	scripts/fleet-bench.py $(BIN)

traffic-edges: build
	scripts/traffic-edges.py $(BIN) $(or $(CONNECTIONS),100000)

traffic-trap: build
	scripts/traffic-trap.py $(BIN) $(or $(MINUTES),14.4)

traffic-soak: build
	scripts/traffic-soak.py $(BIN) $(or $(CONNECTIONS),200000) $(or $(KILLS),100)

# Fetches, builds and keeps it; what is there already isn't done again.
virtual:
	@scripts/build-uml.sh target/uml

# Takes minutes; meant for every night. What needs the kernel is left out elsewhere, and said so.
virtual-test: virtual
	WINDTUNNEL_KERNEL=$(CURDIR)/target/uml/linux WINDTUNNEL_TESTS=all $(CARGO) test --workspace --locked --test kernel -- virtual_time::
model-matrix: build virtual
	$(BIN) calibrate --table mixes --repeat 3 --virtual --kernel target/uml/linux

scale: build
	$(CARGO) bench -p windtunnel --bench scale --locked

studies: build
	@scripts/studies.py $(BIN) --out target/studies

studies-full: build
	@scripts/studies.py $(BIN) --full --out target/studies-full

clean:
	$(CARGO) clean
