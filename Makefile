# Two commands matter: `make demo` and `make test`. `make` alone lists the rest.
# Everything is built as the user, also under `sudo make`; only the finished binary runs as root.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help deps build bpf demo test vm-test lint fmt fuzz bench bench-peers bench-python figures homes random-homes everyday conserve both-ways quic bounds aggregates ablate study-web study-game study-evenings study-learn study-measure study-senders outside faults check-dependencies clean book site man dist wheel wheel-test router fleet container small-router package-test

TARGET := $(or $(CARGO_TARGET_DIR),target)
LASTHOP := $(TARGET)/release/lasthop
LASTHOPD := $(TARGET)/release/lasthopd
# lasthop, and lasthopd, lasthop-message and lasthop-web beside it, which it becomes.
PROGRAMS := --workspace --bins
CARGO := tools/as-user cargo
# No Python writes bytecode beside the sources.
export PYTHONDONTWRITEBYTECODE := 1
SECONDS_EACH := $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),60)

help:                  ## this list
	@sed -n 's/^\([a-z-]*\): *[a-z ]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

deps:                  ## install what is missing to build and run (Debian, Ubuntu), saying what and why
	@tools/install-deps build run

build: deps            ## the release binaries, as the user
	$(CARGO) build --release --locked $(PROGRAMS)

bpf: deps              ## compile the BPF programs anew, into crates/live/src/bpf/object; needed only after changing them
	@tools/install-deps bpf
	$(CARGO) run --quiet --locked -p lasthop-live --example bpf

demo: build            ## a home on this machine, control off then on, with a page of it: ARGS="--seconds 15 --cc reno"
	tools/as-root $(LASTHOP) demo $(if $(findstring --html,$(ARGS)),,--html $(TARGET)/demo.html) $(ARGS)

test:                  ## format, lints, every test, the short form of the fuzz targets; the first time 570 MB of packages
	@tools/install-deps build run test
	@tools/fetch-for-tests
	$(CARGO) fmt --all --check
	tools/test

vm-test:               ## other kernels, bare Debians, Wi-Fi, fq_codel and cake in virtual machines, 1.5 hours: ARGS="wifi" runs one case
	@tools/install-deps build run vm bare
	$(CARGO) build --release --locked $(PROGRAMS)
	$(CARGO) build --release --locked -p lasthop-hwsim --example air
	$(CARGO) test --locked -p lasthop-live --test verifier --no-run
	tools/as-user tools/vm/test --log $(TARGET)/vm-test.log $(LASTHOP) $(ARGS)

package-test:          ## Debian packages: lintian, bare Debians, under systemd in a virtual machine, 25 minutes: ARGS="bookworm"
	@tools/install-deps build package
	$(CARGO) build --release --locked $(PROGRAMS)
	$(CARGO) run --release --locked --quiet -p lasthop-manual --example write -- $(TARGET)/man >/dev/null
	tools/as-root packaging/debian/test $(or $(ROUTER),$(LASTHOPD)) $(TARGET)/release $(TARGET)/man $(ARGS)

lint:                  ## format check, clippy, and the style of C, shell scripts, Python and links only
	@tools/install-deps build run; tools/install-deps lint || true
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	tools/as-user tools/lint

fmt:                   ## format the Rust and the C code
	@tools/install-deps build lint
	$(CARGO) fmt --all
	clang-format-19 -i $$(git ls-files '*.c' '*.h')

fuzz:                  ## every fuzz target for a while: SECONDS=60 FUZZ=wire
	@tools/fuzz "$(SECONDS_EACH)" $(FUZZ)

bench: deps            ## measure what the README promises, over an hour: ARGS="demo bpf" runs parts
	@tools/install-deps bpf
	tools/bench $(ARGS)

bench-peers:           ## the simulator beside ns-2 and ns-3, a quarter of an hour: ARGS="--runs 3 home cell"
	tools/bench-peers $(ARGS)

bench-python:          ## the Python package beside the engine: costs, threads, processes, memory of sweeps, 32 workers; ARGS="cost threads"
	@tools/install-deps build lint
	tools/as-user tools/wheel
	tools/as-user tools/bench-python $(ARGS)

figures:               ## run the papers' sweeps and draw every figure of the book: ARGS="--short" or ARGS="sap-law-5"
	@tools/install-deps build run figures
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user tools/figures $(ARGS)

book:                  ## the book as pages in target/site, in seconds: ARGS="--api" adds the references of crates and package
	@tools/install-deps build lint
	tools/as-user tools/book $(ARGS)

site:                  ## the book with every picture, drawn where it is missing, and the references in target/site; many minutes, the first time
	@tools/install-deps build run figures
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user tools/book --whole

homes:                 ## play scenarios/homes in the simulator, a minute, and write the tables of book/src/homes.md: ARGS="--seeds 3"; those of 2026: ARGS="--of 2026"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/homes.py --binary $(LASTHOP) $(ARGS)

random-homes:          ## 1,000 random homes and 1,000 odd ones without control and with it, a few minutes: ARGS="--kind odd --homes 100 --each"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/random_homes.py --binary $(LASTHOP) $(ARGS)

everyday:              ## cases that once went wrong (scenarios/everyday), without control and with it, in one table: ARGS="--only idle"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/everyday.py --binary $(LASTHOP) $(ARGS)

conserve:              ## does a greedy flow get what small ones leave? 1,000 cases, half a minute: ARGS="--worst 5 --keep FOLDER"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/conserve.py --binary $(LASTHOP) $(ARGS)

both-ways:             ## both directions at once, in 42 homes of the simulator, without control and with it, half a minute: ARGS="--drawn 100"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/both_ways.py --binary $(LASTHOP) $(ARGS)

quic:                  ## QUIC alone and beside TCP, in 160 drawn homes of the simulator, without control and with it, ten seconds: ARGS="--all"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/quic.py --binary $(LASTHOP) $(ARGS)

bounds:                ## do the bounds of `make outside` hold between its cells? 500 drawn homes of the simulator, a minute: ARGS="--only down,both --all"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/bounds.py --binary $(LASTHOP) $(ARGS)

aggregates:            ## does window control keep aggregates of n, ac and ax full? 100 homes of the simulator, half a minute: ARGS="--homes 20 --all"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/aggregates.py --binary $(LASTHOP) $(ARGS)

ablate:                ## what is each parameter of the control law worth? the same homes without its part: ARGS="--only gain --homes 30"
	@tools/install-deps build
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-user python3 -B tools/study/ablate.py --binary $(LASTHOP) $(ARGS)

study-web:             ## pages in a real browser over the CHAP paper's bridge, 25 minutes, 450 MB of packages: ARGS="--short"
	@tools/install-deps build run study web && tools/as-user tools/unpack-deps unpack-web
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-root python3 -B tools/study/web.py --binary $(LASTHOP) $(ARGS)

study-game:            ## a real game server pinged over the same bridge, 15 minutes, 90 MB of packages: ARGS="--short"
	@tools/install-deps build run study game && tools/as-user tools/unpack-deps unpack-game
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-root python3 -B tools/study/game.py --binary $(LASTHOP) $(ARGS)

study-learn:           ## a learned capacity with real kernels in the emulator, two hours: ARGS="--runs 1 --parts down,quic -j 2"
	@tools/install-deps build run study
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-root python3 -B tools/study/learn.py --binary $(LASTHOP) $(ARGS)

study-senders:         ## MPEG streams over this kernel's TCP senders with Snoop and without, beside the simulator, half an hour: ARGS="--flows 1 10"
	@tools/install-deps build run
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-root python3 -B tools/study/senders.py --binary $(LASTHOP) $(ARGS)

study-measure:         ## `lasthop measure` in the emulator beside a real ping, three times, 25 minutes: ARGS="--runs 1 --pairs 6"
	@tools/install-deps build run study
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-root python3 -B tools/study/measure.py --binary $(LASTHOP) $(ARGS)

study-evenings:        ## how often `lasthop measure` is right, over evenings whose truth is known, minutes: EVENINGS=10000
	$(CARGO) run --release --locked --quiet -p lasthop-measure --example evenings -- $(or $(EVENINGS),10000)

outside:               ## the real controller between programs others wrote, off and on, 1.5 hours: ARGS="--list" or ARGS="--short --only 'up*'"
	@tools/install-deps build run outside && tools/as-user tools/unpack-deps unpack-outside && tools/as-user tools/python-environment tools/outside/requirements.txt bench-results/study/outside-python
	$(CARGO) build --release --locked $(PROGRAMS)
	$(CARGO) build --release --locked -p lasthop-emu --example delay
	tools/as-root python3 -B tools/outside/outside.py --binary $(LASTHOP) --delay $(TARGET)/release/examples/delay $(ARGS)

small-router:          ## what Lasthop costs on a small router, counted by emulated Cortex-A53 and A7, a quarter of an hour: ARGS="--lasthopd FILE" counts an aarch64 controller, too
	@tools/install-deps build bpf vm bare count
	@tools/as-user mkdir -p $(TARGET)/vm/small-router
	$(CARGO) bench --locked -p lasthop-live --bench fastpath -- --write $(abspath $(TARGET))/vm/small-router
	tools/as-user python3 -B tools/study/small_router.py --cases $(TARGET)/vm/small-router $(ARGS)

faults:                ## the n-th system call of the controller fails, for every n; 200 kills in each datapath; 2.5 hours: ARGS="--only bpf"
	@tools/install-deps build run test
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-root python3 -B tools/faults/faults.py kills --binary $(LASTHOPD)
	tools/as-root python3 -B tools/faults/faults.py calls --binary $(LASTHOPD) $(ARGS)

check-dependencies:    ## are dependencies used, licensed as deny.toml wants? ARGS="--install" for its tools, "--advisories" for known holes
	tools/check-dependencies $(ARGS)

man: deps              ## manual pages and completions of the programs for bash, zsh and fish, in target/man
	$(CARGO) run --release --locked --quiet -p lasthop-manual --example write -- $(TARGET)/man

dist: deps             ## every program packed with manual pages and completions, static binaries for routers, packages of Debian and OpenWrt, in target/dist: ARGS="--router none"
	@tools/install-deps dist && tools/as-user tools/unpack-deps unpack-dist
	tools/as-user tools/dist $(ARGS)

wheel:                 ## the Python package as a wheel, in dist; the first time 300 MB of packages: ARGS="--arch aarch64"
	@tools/install-deps build lint
	tools/as-user tools/wheel $(ARGS)

wheel-test:            ## that wheel, installed on bare Debians 12 and 13 with their Python, some minutes; an aarch64 one: tools/wheel-test aarch64
	@tools/install-deps build lint bare
	tools/as-user tools/wheel
	tools/as-root tools/wheel-test $(ARGS)

router: deps           ## lasthopd as one small static file for a router, in target/dist/ARCH, started; some ten minutes: ARCH=x86_64, aarch64 or armv7
	@tools/install-deps dist && tools/as-user tools/unpack-deps unpack-dist
	tools/as-user tools/router-binary $(or $(ARCH),aarch64)
	tools/try-router $(or $(ARCH),aarch64) $(TARGET)/dist/$(or $(ARCH),aarch64)/lasthopd

fleet:                 ## the Ansible role: ansible-lint, and ansible-playbook against a real controller in namespaces of its own, a minute
	@tools/install-deps build run fleet
	$(CARGO) build --release --locked -p lasthop-daemon
	tools/as-user tools/python-environment tools/fleet/requirements.txt $(TARGET)/fleet-python
	tools/as-root tools/fleet/test $(LASTHOPD) $(TARGET)/fleet-python

container:             ## the laboratory as an image of podman's, by buildah, and its demo: ARGS="--base bare" on a debootstrap where no image is reached
	@tools/install-deps build container
	$(CARGO) build --release --locked $(PROGRAMS)
	tools/as-root packaging/container/build --programs $(TARGET)/release $(ARGS)

clean:                 ## remove what was built
	$(CARGO) clean
	rm -rf fuzz/target analysis/.venv bench-results/figures bench-results/study
