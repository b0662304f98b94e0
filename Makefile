# What people and machines run. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Where .ci/install-nats-server puts a server that it had to fetch. Debian keeps its own outside of a user's PATH.
export PATH := $(CURDIR)/target/tools:$(PATH):/usr/sbin
export CARGO_TERM_COLOR ?= auto

# Passed on to what a target runs: make demo ARGS="--seconds 0", make bench ARGS="--only latency", make test ARGS=calendar
ARGS ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: nats-server ## build, then play a realistic night on loopback (ARGS="--seconds 0" keeps it up)
	cargo run --release --locked --bin matins -- demo $(ARGS)

.PHONY: test
test: nats-server lint dependencies ## formatting, lints, dependency rules and all tests (ARGS is a filter)
	@if cargo nextest --version >/dev/null 2>&1; then \
	  set -x; cargo nextest run --locked $(if $(CI),--no-fail-fast) $(ARGS); cargo test --locked --doc; \
	else \
	  set -x; cargo test --locked $(if $(CI),--no-fail-fast) $(ARGS); \
	fi

.PHONY: fmt
fmt: ## format the code
	cargo fmt --all

.PHONY: lint
lint: ## check formatting and lints
	cargo fmt --all --check
	cargo clippy --locked --all-targets -- -D warnings

.PHONY: dependencies
dependencies: ## check that no unwanted crate or licence came in
	.ci/check-dependencies

.PHONY: build
build: ## build the release binary
	cargo build --release --locked

.PHONY: bench
bench: nats-server build ## measure intake, page latency and storms on real servers, and how good the symptoms are
	cargo bench --locked --bench intake -- $(ARGS)
	cargo bench --locked --bench precision

.PHONY: bench-year
bench-year: build ## play a year of a million events twice, and compare bytes, seconds and memory
	cargo bench --locked --bench year -- $(ARGS)

.PHONY: acceptance
acceptance: nats-server build ## run the acceptance scenarios that are due (ACCEPTANCE_DIR says where they are)
	.ci/acceptance

.PHONY: nats-server
nats-server:
	@.ci/install-nats-server
