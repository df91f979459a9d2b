# Everything a newcomer or a developer types. Needs Go, a C compiler, Python >= 3.11 with venv, and make;
# the rest (client, XLA CPU plugin, tools) is installed pinned into .venv.

PYTHON ?= python3
SEED   ?= 1
# Inputs a target, or a time. Go reports a target that the end of its time interrupts as failed, now and then: CI counts.
FUZZTIME ?= 30000x
VENV   := .venv
PY     := $(VENV)/bin/python
GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# One setting for build and test, so that they share what they compile. Without grpcnotrace gRPC brings templates
# along, for which the linker keeps every method of every type: a fifth of the program.
export GOFLAGS := -trimpath -tags=grpcnotrace
LDFLAGS := -s -w
# Of the program and of the Python package; X.Y.Z.dev0 between releases.
VERSION := $(file < client_py/anisoflight/VERSION)

.DEFAULT_GOAL := help
# Where Go code is.
ROOMS   := flight internal kernels schedule train
BENCHES := bench bench-torch gpu-compile
TESTS   := test test-go test-python test-all test-rest test-go-rest test-python-rest test-languages
STUDIES := demo figures picture report-real report-learned report-diffusers report-rivals
.PHONY: help notebook $(TESTS) test-integration test-crash build wheel test-wheel release test-browser test-fleet docs \
	lint lint-go lint-python fmt fuzz clean bin/anisoflight-bench $(BENCHES) $(STUDIES)

help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile bench/Makefile studies/Makefile | sed -E 's/:.*## /\t/' | expand -t 18

notebook: build $(VENV)/.notebook ## the notebooks in JupyterLab (docs/tutorial.md)
	$(PY) -m jupyterlab client_py/notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

# torch, diffusers and what else is too large for `make test` have an environment of their own, of 6 GB.
INTEGRATION_VENV ?= .venv-integration
test-integration: build | $(INTEGRATION_VENV)/bin/python ## networks of torch, diffusers and anemoi (minutes)
	cd client_py && PYTHONPATH=. OMP_NUM_THREADS=1 $(abspath $(INTEGRATION_VENV))/bin/python -m pytest -q integration
	cd bench && PYTHONPATH=../client_py $(abspath $(INTEGRATION_VENV))/bin/python -m pytest -q tests/test_torch.py
	cd studies && PYTHONPATH=..:../client_py OMP_NUM_THREADS=1 $(abspath $(INTEGRATION_VENV))/bin/python -m pytest -q \
		tests/test_weather.py

$(INTEGRATION_VENV)/bin/python:
	$(PYTHON) -m venv $(INTEGRATION_VENV)
	$@ -m pip install -q --disable-pip-version-check -r client_py/requirements.txt -r client_py/requirements-dev.txt \
		-r client_py/integration/requirements.txt || { rm -rf $(INTEGRATION_VENV); exit 1; }
	$@ -m pip install -q --disable-pip-version-check --no-deps -r client_py/integration/requirements-bare.txt

# Programs that tests compile are kept between runs, and shared by the processes of a run: the key is their content.
$(TESTS): export ANISOFLIGHT_PROGRAM_CACHE ?= $(CURDIR)/bin/programs
# Most of the tests' time is XLA compiling programs that run once, and more than half of that is LLVM's optimiser. So
# they compile without it: the graphs and all that we do to them are the same. The slow tests of Python compile as users
# do. golangci-lint runs vet.
test-go test-go-rest test-python: export XLA_FLAGS ?= --xla_backend_optimization_level=0

test: test-go test-python ## what a developer runs after each change: Go, then Python against the real server (minutes)

test-go: build $(VENV)/.dev
	go test -short -vet=off -timeout 20m ./...

# Each worker has servers of its own. A file goes to one of them, in the order of names: the last ones are short.
# A worker that dies fails the run: pytest-xdist 3.8 waits for ever for the files of one that it replaces (issue 1378).
WORKERS ?= 2
PYTEST  := $(PY) -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
test-python: build $(VENV)/.dev
	$(PYTEST) -m "not slow" client_py/tests

test-all: test test-rest ## all tests: also what is slow, the documents, other languages, benchmarks and studies in small

test-rest: test-go-rest test-python-rest test-languages
	$(MAKE) -C bench test
	$(MAKE) -C studies test

# The packages whose tests differ: some are left out of -short, or the device is XLA in place of the pure-Go one.
SLOW_PACKAGES = $(sort $(dir $(shell grep -rlE --include='*_test.go' 'testing\.Short|devicetest\.Fast' $(ROOMS))))
test-go-rest: export ANISOFLIGHT_TEST_DEVICE := xla
test-go-rest: build $(VENV)/.dev
	go test -vet=off -timeout 45m $(SLOW_PACKAGES:%/=./%)

test-python-rest: build bin/anisoflight-bench $(VENV)/.dev
	$(PYTEST) -m slow client_py/tests

test-languages: build $(VENV)/.dev ## the programs of client_py/languages in Rust, Go, Java and Node (minutes, the first time)
	cd client_py && PYTHONPATH=.:tests $(abspath $(PY)) -m pytest -q languages

# By root also on disks that are really full or read-only; otherwise that test is skipped, and says so.
test-crash: build $(VENV)/.dev ## kill, fill, end and load a server in every way that docs/durability.md tells of (half an hour)
	go test -timeout 60m -v ./internal/crash -args -all
	cd client_py/tests && $(abspath $(PY)) crash.py --kills 200
	cd client_py/tests && $(abspath $(PY)) soak_mixed.py --operations 10000 --clients 8 --killed 2
	cd client_py/tests && ! $(abspath $(PY)) soak_mixed.py --operations 2000 --clients 8 --leak

build: $(VENV)/.client ## bin/anisoflight, and .venv with the Python client and the XLA plugin
	CGO_ENABLED=1 go build -ldflags "$(LDFLAGS)" -o bin/anisoflight .

# Zig's compiler brings the headers of every glibc, so that the program asks for no more than the oldest that Go's
# runtime needs, wherever it is built, and for arm64 too (make wheel GOARCH=arm64).
GOARCH    ?= amd64
WHEELS    := .venv-wheel
ZIG_amd64 := x86_64-linux-gnu.2.17
ZIG_arm64 := aarch64-linux-gnu.2.17
wheel: $(WHEELS)/.done ## the Python package, and the server for Linux; in dist/ (GOARCH=amd64)
	CGO_ENABLED=1 GOOS=linux GOARCH=$(GOARCH) CC="$(abspath $(WHEELS))/bin/python -m ziglang cc -target $(ZIG_$(GOARCH))" \
		go build -ldflags "$(LDFLAGS)" -o bin/linux-$(GOARCH)/anisoflight .
	rm -rf dist/$(GOARCH)
	ANISOFLIGHT_WHEEL_BINARY=$(abspath bin/linux-$(GOARCH)/anisoflight) \
		$(WHEELS)/bin/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist/$(GOARCH) \
		./client_py ./client_py/server
	$(WHEELS)/bin/auditwheel show dist/$(GOARCH)/anisoflight_server-*.whl
	mv dist/$(GOARCH)/*.whl dist && rmdir dist/$(GOARCH) && ls -l dist

test-wheel: wheel build $(VENV)/.dev ## installs the wheels, with what they depend on, into empty environments, and samples
	ANISOFLIGHT_TEST_WHEEL=$(VERSION) $(PY) -m pytest -q client_py/tests/test_wheel.py
	ANISOFLIGHT_BIN=$(abspath bin/linux-$(GOARCH)/anisoflight) $(PY) -m pytest -q client_py/tests/test_container.py -k image

test-browser: build $(VENV)/.browser ## the quick start in JupyterLab and Chromium, read off the page
	cd client_py && $(abspath $(PY)) -m pytest -q browser
	$(PY) -m pytest -q studies/browser

FLEET_VENV ?= .venv-fleet
test-fleet: build | $(FLEET_VENV)/bin/python ## actors of Ray, processes of MPI, and the files for clusters (minutes)
	cd client_py && PYTHONPATH=$(CURDIR)/client_py OMP_NUM_THREADS=1 $(abspath $(FLEET_VENV))/bin/python -m pytest -q fleet

$(FLEET_VENV)/bin/python:
	$(PYTHON) -m venv $(FLEET_VENV)
	$@ -m pip install -q --disable-pip-version-check -r client_py/requirements.txt -r client_py/requirements-fleet.txt \
		|| { rm -rf $(FLEET_VENV); exit 1; }

docs: build $(VENV)/.docs ## the documents and the packages' reference as a site; in dist/docs
	$(PY) -m pages dist/docs
	$(PY) -m pytest -q client_py/pages

# Two of the three say their version: the wheel's is in its name, and test-wheel has asked its program.
CONTAINER ?= podman
release: ## the wheels, the container and the documents of a version X.Y.Z, and whether they are of it (CONTAINER=docker)
	@echo $(VERSION) | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || \
		{ echo "client_py/anisoflight/VERSION must be X.Y.Z for a release, got $(VERSION)"; exit 1; }
	$(MAKE) test-wheel docs
	$(CONTAINER) build -f Containerfile -t anisoflight:$(VERSION) .
	$(CONTAINER) run --rm anisoflight:$(VERSION) version | grep -F 'anisoflight $(VERSION) '
	grep -o 'anisoflight $(VERSION)<' dist/docs/index.html | head -n 1 | grep .

$(WHEELS)/.done: client_py/requirements-wheel.txt
	$(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

lint: lint-go lint-python ## golangci-lint, ruff, pyright, rumdl, hadolint

# Without -trimpath: trimmed code that cgo writes is shared by all checkouts and names the files of the first one.
lint-go:
	GOFLAGS=-tags=grpcnotrace $(GOLANGCI) run ./...
	cd bench && GOFLAGS=-tags=grpcnotrace $(GOLANGCI) run ./...

lint-python: $(VENV)/.dev
	$(VENV)/bin/ruff check client_py bench studies
	$(VENV)/bin/ruff format --check client_py bench studies
	$(VENV)/bin/pyright -p client_py
	$(VENV)/bin/pyright -p bench
	$(VENV)/bin/pyright -p studies
	$(VENV)/bin/rumdl check .
	$(VENV)/bin/hadolint Containerfile

fmt: $(VENV)/.dev ## format Go and Python
	$(GOLANGCI) fmt
	$(VENV)/bin/ruff check --fix client_py bench studies
	$(VENV)/bin/ruff format client_py bench studies

$(BENCHES): # what measures the product
	$(MAKE) -C bench $@

bin/anisoflight-bench:
	$(MAKE) -C bench ../bin/anisoflight-bench

$(STUDIES): # what is claimed of the product
	$(MAKE) -C studies $@

# The tests of packages with fuzz targets are built once, with the coverage of this module's code to guide the fuzzing
# (that of every library too, as `go test -fuzz` has it, takes minutes to build and says little about ours).
FUZZ_PACKAGES = $(sort $(shell grep -rl --include='*_test.go' '^func Fuzz' $(ROOMS) | xargs -n 1 dirname))

fuzz: ## every fuzz target for a moment (FUZZTIME=30000x), two at a time
	@mkdir -p bin/fuzz
	go test -c -gcflags='github.com/anisoflight/anisoflight/...=-d=libfuzzer' -o bin/fuzz/ $(FUZZ_PACKAGES:%=./%)
	@grep -oH '^func Fuzz[A-Za-z0-9]*' $(FUZZ_PACKAGES:%=%/*_test.go) | sed -E 's,/[^/]*:func , ,' | \
		xargs -n 2 -P 2 sh -c 'echo "$$1 $$2"; cd $$1 && $(CURDIR)/bin/fuzz/$$(basename $$1).test -test.run "^$$" \
		-test.fuzz "^$$2$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x -test.parallel 1 \
		-test.fuzzcachedir $(CURDIR)/bin/fuzz/corpus/$$1' fuzz

clean: ## remove what the other targets made
	rm -rf bin dist runs $(VENV) .venv-*

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The packages are pinned in requirements*.txt; the client itself is installed as a link to client_py.
$(VENV)/.client: client_py/requirements.txt client_py/pyproject.toml | $(PY)
	$(PY) -m pip install -q --disable-pip-version-check -r client_py/requirements.txt
	$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e client_py
	@touch $@

$(VENV)/.notebook: client_py/requirements-notebook.txt $(VENV)/.client
	$(PY) -m pip install -q --disable-pip-version-check -r client_py/requirements-notebook.txt
	@touch $@

$(VENV)/.browser: client_py/requirements-browser.txt $(VENV)/.notebook
	$(PY) -m pip install -q --disable-pip-version-check -r client_py/requirements-browser.txt
	@touch $@

$(VENV)/.docs: client_py/requirements-docs.txt $(VENV)/.dev
	$(PY) -m pip install -q --disable-pip-version-check -r client_py/requirements-docs.txt
	@touch $@

$(VENV)/.dev: client_py/requirements-dev.txt $(VENV)/.client
	$(PY) -m pip install -q --disable-pip-version-check -r client_py/requirements-dev.txt
	@touch $@
