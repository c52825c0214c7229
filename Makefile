PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 4
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: help serve page set-up test test-long test-clients quick lint types check mutants conformance bench bench-search bench-memory bench-tasks bench-sign-in bench-page bench-gateways docs docs-serve screenshots clean
.DEFAULT_GOAL := help

help:
	@echo "make serve   set up and run the gateway on http://127.0.0.1:7420/mcp"
	@echo "make test    set up and run every test"
	@echo "make docs    build the documentation as a site, in site/"
	@echo "More: lint, types, test-clients, mutants, conformance, bench, docs-serve,"
	@echo "page, screenshots, clean. CONTRIBUTING.md says what they do."

$(VENV)/run.stamp: pyproject.toml constraints.txt scripts/install.py
	@$(PYTHON) scripts/install.py $(VENV) --constraint constraints.txt --editable .
	@touch $@

# pip before 25.1 cannot read dependency groups, so the newest one the constraints allow comes first.
$(VENV)/dev.stamp: $(VENV)/run.stamp
	$(PIP) pip
	$(PIP) --group dev
	@touch $@

$(VENV)/node.stamp: $(VENV)/dev.stamp tests/node/package.json tests/node/package-lock.json tests/real_clients/install.py
	$(BIN)/python tests/real_clients/install.py
	@touch $@

$(VENV)/clients.stamp: $(VENV)/node.stamp tests/real_clients/package.json tests/real_clients/package-lock.json
	$(BIN)/python tests/real_clients/install.py --all
	@touch $@

$(VENV)/browser.stamp: $(VENV)/node.stamp tests/browser/install.py tests/debian.py
	$(BIN)/python tests/browser/install.py
	@touch $@

# What makes and checks the page: esbuild, TypeScript for the types of its modules, and axe-core.
$(VENV)/page-node.stamp: $(VENV)/dev.stamp tests/page/package.json tests/page/package-lock.json
	$(BIN)/python tests/node/install.py tests/page
	@touch $@

# After the browser: Debian installs one package at a time.
$(VENV)/systemd.stamp: $(VENV)/run.stamp tests/service/systemd_analyze.py | $(VENV)/browser.stamp
	$(BIN)/python tests/service/systemd_analyze.py
	@touch $@

serve: $(VENV)/run.stamp
	@$(BIN)/pegboard serve $(ARGS)

# What browsers load, in src/pegboard/gateway/page/static, from the modules beside it.
page: $(VENV)/page-node.stamp
	$(BIN)/python scripts/build_page.py

# What the tests need beside Python packages.
set-up: $(VENV)/browser.stamp $(VENV)/systemd.stamp $(VENV)/page-node.stamp

# Most tests wait for processes and networks more than they work, so there are more workers than most machines have cores.
# Each worker and what it starts reads the same modules, so they are compiled once, whatever the machine's own setting.
test: export PYTHONDONTWRITEBYTECODE =
test: set-up
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

# The same with a hundred servers where the short form has twenty.
test-long: set-up
	PEGBOARD_LONG_TESTS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --timeout 600 $(ARGS)

# Real client programs (1.5 GB of packages): what `pegboard install` writes, and whole turns of agents with a scripted model.
test-clients: $(VENV)/clients.stamp
	PEGBOARD_ALL_CLIENTS=1 $(BIN)/python -m pytest --numprocesses 2 tests/real_clients $(ARGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/page-node.stamp
	$(BIN)/basedpyright --warnings
	$(BIN)/python tests/page/check_types.py

# Faults put into copies of the source: whether the tests notice. ARGS: --entries, --random 200 --seed 1, --only TEXT, --record.
mutants: $(VENV)/node.stamp
	$(BIN)/python -m tests.mutants --workers $(WORKERS) $(ARGS)

conformance: $(VENV)/node.stamp
	$(BIN)/python -m tests.conformance

# ARGS go to one of them: `make bench-memory ARGS="--sizes 1000"`.
bench: bench-search bench-memory bench-tasks bench-sign-in bench-page bench-gateways

$(VENV)/bench.stamp: $(VENV)/dev.stamp
	$(PIP) --group bench
	@touch $@

bench-search: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks.search $(ARGS)

bench-memory: $(VENV)/node.stamp
	$(BIN)/python -m benchmarks.memory $(ARGS)

bench-tasks: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.tasks $(ARGS)

bench-sign-in: $(VENV)/node.stamp
	$(BIN)/python -m benchmarks.sign_in $(ARGS)

bench-page: $(VENV)/browser.stamp
	$(BIN)/python -m benchmarks.page $(ARGS)

$(VENV)/bench-node.stamp: $(VENV)/bench.stamp benchmarks/node/package.json benchmarks/node/package-lock.json
	$(BIN)/python tests/node/install.py benchmarks/node
	@touch $@

bench-gateways: $(VENV)/bench-node.stamp
	$(BIN)/python -m benchmarks.gateways $(ARGS)

# The site needs neither Pegboard nor the tests.
$(VENV)/docs.stamp: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what builds the documentation into $(VENV) …"
	@$(PIP) pip
	@$(PIP) --group docs
	@touch $@

docs docs-serve: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/docs.stamp
	@$(BIN)/python -m mkdocs --quiet build --strict --clean
	@echo "Open site/index.html, or read it with: make docs-serve"

docs-serve: $(VENV)/docs.stamp
	@$(BIN)/python -m mkdocs serve --strict $(ARGS)

# Pictures of the terminal, of the page and of the diagrams, made anew by the real commands.
$(VENV)/pictures-node.stamp: $(VENV)/browser.stamp tests/screenshots/package.json tests/screenshots/package-lock.json
	$(BIN)/python tests/node/install.py tests/screenshots
	@touch $@

screenshots: $(VENV)/pictures-node.stamp
	$(BIN)/python -m tests.screenshots $(ARGS)

clean:
	rm -rf site $(VENV) tests/node/node_modules tests/real_clients/node_modules tests/screenshots/node_modules tests/page/node_modules benchmarks/node/node_modules
