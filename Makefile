# List of commands; pyproject.toml configures the tools.
SHELL := /bin/bash
UV := $(or $(shell command -v uv),.uv/bin/uv)
RUN := $(UV) run --frozen --quiet
# Measurements use the content of the image: no development dependencies, compiled bytecode, and a
# Python that was compiled with optimisation, if there is one.
BENCH_PYTHON = $(eval BENCH_PYTHON := $(shell python3 -m tests.bench.interpreter))$(BENCH_PYTHON)
BENCH_RUN = UV_PROJECT_ENVIRONMENT=.venv-bench $(UV) run --frozen --quiet --no-dev --compile-bytecode \
  --python $(BENCH_PYTHON)
.DEFAULT_GOAL := help
.PHONY: tail neighbours askers help install demo devices rivals gangs test relaxations parity cel hints schedules device-schedules lint types imports house worlds storm faults bench start bench-quick bench-report bench-devices bench-gpu release site tutorial hostile waking large soak e2e conformance failovers image journal bench-journal manifests operators pins test-trixie ui-test code-map what-if

help: ## Print this menu
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.uv/bin/uv:
	@python3 -m venv .uv && .uv/bin/pip install --quiet --disable-pip-version-check uv

install: $(UV) ## Install the dependencies of the other targets into .venv
	@$(UV) sync --frozen --quiet

demo: install ## Run berth against a real etcd and kube-apiserver and watch it place 1 000 pods
	@$(RUN) python -m tests.demo $(ARGS)

test: install ## Run all tests, including those against a real control plane
	@$(RUN) python -m tests.controlplane.binaries etcd kube-apiserver kube-scheduler oracle hints cel \
	  kubectl helm >/dev/null
	@$(RUN) pytest --numprocesses $$(($$(nproc) + 1)) --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

parity: install ## Compare N (20000) verdicts, volumes, preemption or devices (KIND) with kube-scheduler's plugins
	@$(RUN) python -m tests.controlplane.binaries oracle >/dev/null
	@$(RUN) python -m tests.parity --kind $(or $(KIND),verdicts) --cases $(or $(N),20000) \
	  $(if $(SEED),--seed $(SEED))

relaxations: install ## Check the relaxations of N (2000) random pods against a brute-force search; SEED=... repeats
	@$(RUN) python -m tests.relaxations --pods $(or $(N),2000) $(if $(SEED),--seed $(SEED))

cel: install ## Compare N (100000) CEL selectors on random devices with kube-scheduler's CEL; SEED=... repeats
	@$(RUN) python -m tests.controlplane.binaries cel >/dev/null
	@$(RUN) python -m tests.parity.cel --cases $(or $(N),100000) $(if $(SEED),--seed $(SEED))

hints: install ## Compare the pods that N random changes (20000) wake with kube-scheduler's hints; SEED=... repeats
	@$(RUN) python -m tests.controlplane.binaries hints >/dev/null
	@$(RUN) python -m tests.parity.hints --cases $(or $(N),20000) $(if $(SEED),--seed $(SEED))

schedules: install ## Let berth and kube-scheduler place pods on N random clusters (200), step by step
	@$(RUN) python -m tests.controlplane.binaries etcd kube-apiserver kube-scheduler oracle >/dev/null
	@$(RUN) python -m tests.parity.schedules --clusters $(or $(N),200) $(if $(SEED),--seed $(SEED))

device-schedules: install ## Compare N schedules (3000) of 10 pods with device claims, step by step; SEED=... repeats
	@$(RUN) python -m tests.controlplane.binaries oracle >/dev/null
	@$(RUN) python -m tests.parity.device_schedules --cases $(or $(N),3000) $(if $(SEED),--seed $(SEED))

worlds: install ## Compare all writes and Events of 500 generated worlds with their record (ARGS=0-99)
	@$(RUN) python -m tests.worlds check $(ARGS)

storm: install ## Play simulated worlds with faults: SEED (1), SEEDS (10), STEPS (5000), ARGS=--help
	@$(RUN) python -m tests.storm --seed $(or $(SEED),1) --seeds $(or $(SEEDS),$(if $(SEED),1,10)) \
	  --steps $(or $(STEPS),5000) $(ARGS)

faults: install ## Prove that the test of each fault fails where its mechanism is gone: ROWS="F9 R3"
	@$(RUN) python -m tests.faults $(ROWS)

lint: install ## Check style and format
	@$(RUN) ruff check . && $(RUN) ruff format --check .

types: install ## Check types
	@$(RUN) mypy

imports: install ## Check that cache <- plugins <- scheduler holds
	@$(RUN) lint-imports

code-map: install ## Generate docs/code-map.md from the docstrings
	@$(RUN) python -m tests.house.code_map

house: install ## Measure the code: lines, folders, import cycles, one pod's path (CHECKOUTS)
	@$(RUN) python -m tests.house $(CHECKOUTS) $(ARGS)

bench: $(UV) ## Measure beside kube-scheduler (WORKLOADS, NODES, PODS, ROUNDS, CONTENDERS, JSON)
	@$(BENCH_RUN) python -m tests.controlplane.binaries etcd kube-apiserver kube-scheduler >/dev/null
	@$(BENCH_RUN) python -m compileall -q berth cache plugins scheduler tests/bench tests/controlplane
	@$(BENCH_RUN) python -m tests.bench run $(BENCH_OPTIONS) $(ARGS)
	@$(BENCH_RUN) python -m tests.bench report $(if $(JSON),$(JSON))

bench-devices: $(UV) ## Measure decisions about pods with claims, without an API server (ARGS=--series=..., JSON)
	@$(BENCH_RUN) python -m tests.bench devices --json $(or $(JSON),docs/benchmarks/devices.json) $(ARGS)
	@$(BENCH_RUN) python -m tests.bench report $(or $(JSON),docs/benchmarks/devices.json)

QUICK := Basic,PodAffinity,TopologySpreading
bench-quick: install ## Measure three workloads with 1 000 nodes in five minutes
	@$(MAKE) --no-print-directory bench WORKLOADS=$(or $(WORKLOADS),$(QUICK)) \
	  NODES=$(or $(NODES),1000) ROUNDS=$(or $(ROUNDS),3) JSON=$(or $(JSON),docs/benchmarks/quick.json)

bench-report: install ## Generate tables and plots from the figures in JSON
	@$(RUN) python -m tests.bench report $(if $(JSON),$(JSON))

start: $(UV) ## Measure starts beside kube-scheduler's, phase by phase (NODES, PODS, CONTENDERS, JSON, ARGS=--running=1000,20000)
	@$(BENCH_RUN) python -m tests.controlplane.binaries etcd kube-apiserver kube-scheduler >/dev/null
	@$(BENCH_RUN) python -m tests.bench start $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) \
	  $(if $(CONTENDERS),--contenders $(CONTENDERS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	  $(TO_FILE) $(ARGS)
	@$(REPORT_FILE)

# Without JSON they print only: a quick run does not change the figures that are committed.
TO_FILE = $(if $(JSON),--json $(JSON))
REPORT_FILE = $(if $(JSON),$(BENCH_RUN) python -m tests.bench report $(JSON))

BENCH_OPTIONS = $(if $(WORKLOADS),--workloads $(WORKLOADS)) $(if $(NODES),--nodes $(NODES)) \
  $(if $(PODS),--pods $(PODS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
  $(if $(CONTENDERS),--contenders $(CONTENDERS)) $(if $(JSON),--json $(JSON))

bench-gpu: install ## Measure the allocated share of GPUs by policy: TRACE=folder (SEEDS=42-51, ARGS=...)
	@test -n "$(TRACE)" || { echo "make bench-gpu TRACE=folder with openb_*.csv" >&2; exit 2; }
	@$(RUN) python -m tests.bench gpu $(TRACE) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

bench-journal: $(UV) ## Measure pods/s and cycles with --journal and without, in turn (NODES, WORKLOADS, ROUNDS, PODS)
	@$(BENCH_RUN) python -m tests.controlplane.binaries etcd kube-apiserver >/dev/null
	@$(BENCH_RUN) python -m tests.bench journal $(if $(WORKLOADS),--workloads $(WORKLOADS)) \
	  $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

HOSTILE_OPTIONS = $(if $(NODES),--nodes $(NODES)) $(if $(CONTENDERS),--contenders $(CONTENDERS)) \
  $(if $(JSON),--json $(JSON))
hostile: $(UV) ## Measure the effect of 80 kinds of hostile pods on others (SPECS, NODES, CONTENDERS, JSON)
	@$(BENCH_RUN) python -m tests.controlplane.binaries etcd kube-apiserver kube-scheduler >/dev/null
	@$(BENCH_RUN) python -m tests.bench hostile $(HOSTILE_OPTIONS) $(if $(SPECS),--specs $(SPECS)) $(ARGS)
	@$(BENCH_RUN) python -m tests.bench mixed $(HOSTILE_OPTIONS)

large: $(UV) ## Run berth on NODES (5000) and PODS (50000) in POOLS (1), against a stand-in for an API server (JSON)
	@$(BENCH_RUN) python -m tests.bench large --nodes $(or $(NODES),5000) --pods $(or $(PODS),50000) \
	  --pools $(or $(POOLS),1) $(TO_FILE) $(ARGS)
	@$(REPORT_FILE)

waking: $(UV) ## Measure the loop's lag while pods start and 10 000 wait (CONTENDERS, ARGS)
	@$(BENCH_RUN) python -m tests.controlplane.binaries etcd kube-apiserver >/dev/null
	@$(BENCH_RUN) python -m tests.bench waking $(if $(CONTENDERS),--contenders $(CONTENDERS)) $(ARGS)

tail: $(UV) ## Measure latencies and loop stalls beside floods, reloads, preemption (NODES, CONTENDERS, JSON, ARGS)
	@$(BENCH_RUN) python -m tests.controlplane.binaries etcd kube-apiserver >/dev/null
	@$(BENCH_RUN) python -m tests.bench tail $(if $(NODES),--nodes $(NODES)) \
	  $(if $(CONTENDERS),--contenders $(CONTENDERS)) $(TO_FILE) $(ARGS)
	@$(REPORT_FILE)

soak: $(UV) ## Run berth for MINUTES (60) with new identities in all objects and record its table sizes
	@$(BENCH_RUN) python -m tests.controlplane.binaries etcd kube-apiserver >/dev/null
	@$(BENCH_RUN) python -m tests.bench soak --minutes $(or $(MINUTES),60) $(ARGS)

conformance: install ## Run Kubernetes' e2e tests of scheduling with berth (CONTENDER, FOCUS, SWITCH_OFF=plugin)
	@$(RUN) python -m tests.conformance $(if $(CONTENDER),--contender $(CONTENDER)) \
	  $(if $(FOCUS),--focus '$(FOCUS)') $(if $(SWITCH_OFF),--switch-off $(SWITCH_OFF)) $(ARGS)

e2e: install ## Deploy image and chart on a cluster with real nodes, and inject faults (root; Debian)
	@$(RUN) python -m tests.e2e $(ARGS)

manifests: install ## Generate the plain manifests and the table of values from the chart
	@$(RUN) python -m tests.deploy.manifests

operators: install ## Record the PodGroups and pods that KubeRay and Kubeflow Trainer write, for tests
	@$(RUN) python -m tests.operators.record

pins: install ## Renew the pins of base image (queries its registry) and build tools of the Dockerfile
	@$(RUN) python -m tests.deploy.pins

test-trixie: install ## Run the tests without a control plane on Debian 13, Python 3.13 (root; Debian)
	@$(RUN) python -m tests.e2e.trixie $(ARGS)

ui-test: $(UV) ## Open every view of berth ui in Chromium (Debian; npm): screenshots, axe-core, times (ARGS)
	@UV_PROJECT_ENVIRONMENT=.venv-browser $(RUN) --group browser python -m tests.ui $(ARGS)

failovers: install ## Stop N leaders (20) under load, and check the audit log for writes of other replicas
	@$(RUN) python -m tests.controlplane.binaries etcd kube-apiserver >/dev/null
	@$(RUN) python -m tests.scenarios.failovers --count $(or $(N),20)

devices: install ## Allocate devices to PODS (2000) on NODES (500) while binds fail and the leader is killed
	@$(RUN) python -m tests.devices faults $(if $(PODS),--pods $(PODS)) $(if $(NODES),--nodes $(NODES)) $(ARGS)

rivals: install ## Let berth and kube-scheduler share a pool of devices for SECONDS (300; ARGS=--separated)
	@$(RUN) python -m tests.devices rivals --seconds $(or $(SECONDS),300) $(ARGS)

askers: install ## Let 20 users ask why while 200 pods/s come, 5 000 nodes: answers, and decisions with and without
	@$(RUN) python -m tests.askers $(ARGS)

neighbours: install ## Let kube-scheduler and a second scheduler fill a cluster at once (SEEDS=1-10, JSON, ARGS=--help)
	@$(RUN) python -m tests.controlplane.binaries etcd kube-apiserver kube-scheduler >/dev/null
	@$(RUN) python -m tests.neighbours $(if $(SEEDS),--seeds $(SEEDS)) $(if $(JSON),--json $(JSON)) $(ARGS)

gangs: install ## Place gangs on a real API server: KIND=competing, never, faults; or placements, victims (SEED, ARGS, CONTENDERS)
	@$(RUN) python -m tests.gangs $(or $(KIND),competing) $(if $(SEED),--seed $(SEED)) \
	  $(if $(CONTENDERS),--contenders $(CONTENDERS)) $(ARGS)

journal: install ## Replay MINUTES (60) of mixed load on a real API server, and the journals of KILLS (50) writers (SEED)
	@$(RUN) python -m tests.controlplane.binaries etcd kube-apiserver kube-controller-manager >/dev/null
	@$(RUN) python -m tests.journal_hours --minutes $(or $(MINUTES),60) --kills $(or $(KILLS),50) \
	  $(if $(SEED),--seed $(SEED)) $(ARGS)

what-if: install ## Compare N (100) forecasts with what happens then on a real API server (SEED=1)
	@$(RUN) python -m tests.what_if --count $(or $(N),100) $(if $(SEED),--seed $(SEED)) $(ARGS)

# A docker client without its daemon cannot build.
BUILDER ?= $(shell docker info >/dev/null 2>&1 && echo docker || command -v podman || command -v buildah)
IMAGE ?= berth:dev
image: ## Build the image with docker, podman or buildah (BASE IMAGE VERSION BUILD_ARGS)
	@test -n "$(BUILDER)" || { echo "make image: needs docker, podman or buildah" >&2; exit 1; }
	$(BUILDER) build $(if $(BASE),--build-arg BASE=$(BASE)) \
	  $(if $(VERSION),--build-arg VERSION=$(VERSION)) $(BUILD_ARGS) -t $(IMAGE) .

release: install ## Build wheel, sdist, chart, kubectl plugin, image archives, SBOMs, notes in dist/ (BASE, PLACE, ARGS)
	@$(RUN) python -m tests.release $(if $(PLACE),--place $(PLACE)) $(ARGS) $(if $(BASE),BASE=$(BASE)) \
	  $(if $(BUILD_ARGS),'BUILD_ARGS=$(BUILD_ARGS)')

site: install ## Build the documentation as a site in .build/site, with all links checked (ARGS=serve)
	@$(RUN) python -m tests.site $(ARGS)

tutorial: install ## Follow the tutorial and the pages about questions, every command as printed (ARGS=--write)
	@$(RUN) python -m tests.controlplane.binaries etcd kube-apiserver kubectl >/dev/null
	@$(RUN) python -m tests.tutorial $(ARGS)
