# `make demo` shows everything, `make test` proves everything. Both need root, Rust and Go
# on Debian; what else is missing is installed, or only named where INSTALL=no.
.DELETE_ON_ERROR:
.PHONY: demo demo-down test check unit emulator conformance user-data workspace package portal argocd docs cluster e2e codegen goldens

XTASK := cargo xtask
# THOROUGH=1, as `make test-all` sets it: with what takes long.
PYTEST = $(XTASK) python -m pytest -p no:cacheprovider $(if $(THOROUGH),,-m 'not thorough')
# Which cluster `make demo` uses: `local`, or `current` for the kubeconfig's.
CLUSTER ?= local
SUITE ?= main
# Each suite has a cluster of its own; `main` shares the name that goldens use.
TEST = $(if $(filter main,$(SUITE)),test,test-$(SUITE))
# Other people's packages that a suite needs, built from source: half an hour, once.
MIRRORED_upbound := upbound/provider-aws-ec2
# Feature gates of the API server, for a cluster that differs from Kubernetes' defaults.
GATES ?=
# The longest pause in seconds before a crashed container starts again, for suites that kill often.
RESTART_PAUSE_bastion := 1
# Which configuration a suite installs instead of the one with claims.
NAMESPACED_namespaced := --namespaced
# What people sign in with, for suites with a portal.
IDENTITIES_portal := --identities

demo: ready
	@$(XTASK) demo $(if $(filter current,$(CLUSTER)),--current,--name demo) \
		$(if $(WITH),--with $(WITH))

# What the machine must have, checked before anything is compiled; then xtask itself, with
# Cargo's own progress.
.PHONY: ready
ready:
	@sh tests/cluster/prerequisites.sh
	@sh xtask/compiled_here.sh "$${CARGO_TARGET_DIR:-target}"
	@[ -e "$${CARGO_TARGET_DIR:-target}/debug/xtask" ] || \
		echo "A first run compiles for about 20 minutes on two processors, later ones for seconds." >&2
	@cargo build --workspace --bin xtask

demo-down: ready
	@$(XTASK) cluster down --name demo

# What contributors and CI run: `cargo xtask test` runs these targets, two at a time.
test: ready
	@$(XTASK) test

# Every suite there is, once, recorded by commit; what passed is not run again.
.PHONY: test-all
test-all: ready
	@$(XTASK) test-all

# Formatting, lints, imports, licences, and whether Python can read its files. Generated files are
# checked by xtask's own tests.
check: PYTHON_FOLDERS := tests argocd xtask function/cluster/programs
check:
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets --features local-cluster/cluster -- -D warnings
	$(XTASK) imports
	$(XTASK) licences
	$(XTASK) python -m black --quiet --check $(PYTHON_FOLDERS)
	PYTHONPYCACHEPREFIX=target/bytecode $(XTASK) python -m compileall -q $(PYTHON_FOLDERS)

unit:
	cargo test --quiet --workspace

# The EC2 emulator against AWS's documented behaviour.
emulator:
	cd tests/emulator && $(PYTEST)

# The function's program against Crossplane's function specification.
conformance: PROGRAMS := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug
conformance:
	$(XTASK) package compile
	cd tests/conformance && FUNCTION_GPU_WORKSPACE=$(PROGRAMS)/function-gpu-workspace \
		$(PYTEST)

# What instances are given to run, booted.
user-data:
	cd tests/user_data && $(PYTEST)

# What pods are given to run, with nodes that are folders.
workspace:
	cd tests/workspace && $(PYTEST)

# Package files and their bills of materials, built twice alike, by code that shares
# none with their builder.
package: PACKAGES := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug/packages
package:
	$(XTASK) package $(if $(THOROUGH),verify,build)
	cd tests/package && PACKAGES=$(PACKAGES) $(PYTEST)

# The portal with an API server, a provider of identities and, thoroughly, its app in a browser.
portal: PROGRAMS := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug
portal:
	$(if $(THOROUGH),sh tests/cluster/prerequisites.sh tests/portal/prerequisites.list)
	$(if $(THOROUGH),$(MAKE) portal-web)
	cargo build --quiet --workspace --bin gpu-portal
	cd tests/portal && XTASK_PROGRAM=$(PROGRAMS)/xtask GPU_PORTAL=$(PROGRAMS)/gpu-portal \
		$(PYTEST)

# The portal's app, which the program has inside if it is built before.
.PHONY: portal-web
portal-web:
	$(XTASK) python portal/web/build.py

# The health that Argo CD shows, by Argo CD's own program: ten minutes to build, once.
argocd:
	cd argocd/tests && ARGOCD_HEALTH=$$($(XTASK) cluster binary argocd-health) \
		$(PYTEST)

# Commands, manifests, links and policies of the documentation, as far as they need
# no cluster. The others run in the end-to-end suites.
docs:
	cd tests/docs && $(PYTEST)

# The local cluster from up to down, with a part of it killed; thoroughly with a
# neighbour and with Kueue. What takes long to
# build is built before: the tests' deadlines are those of a start.
cluster:
	$(XTASK) build
	cargo test --quiet --workspace --features local-cluster/cluster --test lifecycle -- \
		$(if $(THOROUGH),,--skip neighbour --skip kueue)

# One end-to-end suite on a fresh cluster of its own. It is left up on failure, but for
# KEEP_CLUSTER=no: its programs would slow down the suites after it.
# `make e2e SUITE=main TESTS="-k leases"` runs some of its tests.
e2e:
	$(if $(filter portal,$(SUITE)),sh tests/cluster/prerequisites.sh tests/portal/prerequisites.list)
	$(XTASK) cluster down --name $(TEST)
	$(MAKE) suite-on-new-cluster$(if $(filter no,$(KEEP_CLUSTER)), \
		|| { $(XTASK) cluster down --name $(TEST); exit 1; })
	$(XTASK) cluster down --name $(TEST)
	$(if $(filter bastion,$(SUITE)$(GATES)$(TESTS)),$(MAKE) rights-before-1.36)
	$(if $(filter portal,$(SUITE)$(NAMESPACED_portal)$(TESTS)),$(MAKE) portal-without-claims)

.PHONY: suite-on-new-cluster
suite-on-new-cluster:
	$(XTASK) cluster up --name $(TEST)$(if $(GATES), --feature-gates $(GATES))\
		$(if $(RESTART_PAUSE_$(SUITE)), --restart-pause $(RESTART_PAUSE_$(SUITE)))\
		$(if $(IDENTITIES_$(SUITE)), $(IDENTITIES_$(SUITE)))
	$(if $(filter bastion cluster devctl gitops lifecycle speed,$(SUITE)),$(MAKE) pods)
	$(if $(filter bastion,$(SUITE)),$(XTASK) image bastion --name $(TEST))
	$(if $(filter bastion,$(SUITE)),$(XTASK) image hostile --name $(TEST))
	$(if $(filter portal,$(SUITE)),$(XTASK) image portal --name $(TEST))
	$(if $(filter bastion devctl lifecycle speed,$(SUITE)),$(XTASK) image agent --name $(TEST))
	$(if $(filter bastion devctl lifecycle install portal speed upbound,$(SUITE)),$(XTASK) cluster install machines --name $(TEST))
	$(if $(filter gitops,$(SUITE)),$(XTASK) cluster install argocd --name $(TEST))
	$(if $(filter gitops install,$(SUITE)),$(MAKE) published)
	$(if $(MIRRORED_$(SUITE)),$(XTASK) package mirror $(MIRRORED_$(SUITE)) --name $(TEST))
	$(if $(filter gitops install,$(SUITE)),,$(XTASK) demo --name $(TEST) --platform-only $(NAMESPACED_$(SUITE)))
	$(XTASK) e2e $(SUITE) --name $(TEST)$(if $(TESTS), -- $(TESTS))

# The bastion's rights once more, as on a Kubernetes without constrained impersonation.
.PHONY: rights-before-1.36
rights-before-1.36:
	$(MAKE) e2e SUITE=bastion GATES=ConstrainedImpersonation=false TESTS="-k rights"

# A life in the portal once more, in a cluster that has the configuration without claims.
.PHONY: portal-without-claims
portal-without-claims:
	$(MAKE) e2e SUITE=portal NAMESPACED_portal=--namespaced TESTS="-k life"

# What workspaces in the cluster need there: queues, GPUs that are not, their image.
.PHONY: pods
pods:
	$(XTASK) cluster install kueue --name $(TEST)
	$(XTASK) cluster gpus 4 --name $(TEST)
	$(XTASK) image workspace --name $(TEST)

# What pods are given to run, in pods: tests/workspace beside a cluster.
.PHONY: on-cluster
on-cluster:
	$(XTASK) cluster down --name test-workspace
	$(XTASK) cluster up --name test-workspace
	cd tests/workspace && export WORKSPACE_IMAGE=$$($(XTASK) image workspace --name test-workspace) && \
		eval "$$($(XTASK) cluster env --name test-workspace)" && \
		$(PYTEST) on_cluster
	$(XTASK) cluster down --name test-workspace

# The packages in the registry, for suites that install them in another way.
.PHONY: published
published:
	eval "$$($(XTASK) cluster env --name $(TEST))" && \
		$(XTASK) package push --without-missing --registry "$$GPU_WORKSPACES_REGISTRY"

# A million random requests to the function, optimised, and each time others. Not a
# test: it takes ten minutes. `make fuzz FUZZ_SEED=…` repeats one; more in
# function/tests/fuzz/main.rs.
.PHONY: fuzz
fuzz: export FUZZ_COUNT ?= 1000000
fuzz: export FUZZ_SEED ?= $(shell date +%s)000000
fuzz:
	cargo test --quiet --workspace --profile fuzz --test fuzz -- --nocapture

# Which random seeds find known defects, and whether `make test` plays them. Not a test:
# it compiles and plays a simulation for each. `make planted ONLY=fuzz` takes those of one.
.PHONY: planted
planted:
	$(XTASK) planted $(if $(ONLY),--only $(ONLY))

# What a call of the function costs, beside an empty one, Go's and Python's. Not a
# test: it takes ten minutes and an idle machine.
.PHONY: bench-function
bench-function:
	cargo run --quiet --release --bin bench-function -- $(BENCH)

# A thousand pools and ten thousand instances by the provider, beside the naive shape.
# Not a test: it takes twenty minutes and an idle machine. POOLS=50 INSTANCES=500 is
# a short one.
.PHONY: bench-provider
bench-provider:
	cargo run --quiet --release --bin bench-provider -- $(BENCH)

# The ways to a workspace in turns: the bastion, Debian's sshd as a jump host, kubectl
# port-forward, and none. Not a test: it takes half an hour and an idle machine.
# BENCH="--rounds 5 --people 20" is a short one.
.PHONY: bench-bastion
bench-bastion: TEST := bench-bastion
# Cargo finds xtask from the root only: this folder is in another package.
bench-bastion: BASTION_BENCH := tests/bench/bastion
bench-bastion:
	$(PYTEST) -c $(BASTION_BENCH)/pyproject.toml --rootdir $(BASTION_BENCH) $(BASTION_BENCH)
	$(XTASK) cluster down --name $(TEST)
	$(XTASK) cluster up --name $(TEST)
	$(XTASK) image workspace --name $(TEST)
	$(XTASK) image bastion --release --name $(TEST)
	$(XTASK) demo --name $(TEST) --platform-only
	code=1; eval "$$($(XTASK) cluster env --name $(TEST))" && \
		PYTHONPATH=$(BASTION_BENCH):tests/bench/judging:tests/e2e $(XTASK) python -m bench $(BENCH) && code=0; \
		$(XTASK) cluster down --name $(TEST); exit $$code

# The portal beside an Express backend with the same three endpoints, on the same API server. Not a
# test: it takes twenty minutes and an idle machine. BENCH="--people 10 --rest 30 --changing 10
# --audits 1" is a short one.
.PHONY: bench-portal
bench-portal: PORTAL_BENCH := tests/bench/portal
bench-portal: TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
bench-portal:
	sh tests/cluster/prerequisites.sh tests/portal/prerequisites.list
	$(PYTEST) -c $(PORTAL_BENCH)/pyproject.toml --rootdir $(PORTAL_BENCH) $(PORTAL_BENCH)
	rm -rf $(TARGET)/bench-portal/image
	$(XTASK) image portal --release --layout $(TARGET)/bench-portal/image
	cargo build --quiet --release --workspace --bin portal-load
	XTASK_PROGRAM=$(TARGET)/debug/xtask PORTAL_LOAD=$(TARGET)/release/portal-load \
		PORTAL_IMAGE=$(TARGET)/bench-portal/image \
		PYTHONPATH=$(PORTAL_BENCH):tests/bench/judging:tests/portal \
		$(XTASK) python -m bench $(BENCH)

codegen:
	$(XTASK) codegen

# Writes every golden anew; review the difference like code.
goldens:
	UPDATE_GOLDENS=1 cargo test --quiet --workspace --test goldens
	UPDATE_GOLDENS=1 $(MAKE) argocd
	UPDATE_GOLDENS=1 $(MAKE) e2e SUITE=main TESTS="-k render"
