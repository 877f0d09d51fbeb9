# SPDX-License-Identifier: MIT
# Two commands for newcomers: `make run` and `make check`. The build itself is meson's (meson.build).

BUILD  ?= build
DIST   ?= dist
CHECKS ?= build-check build-quick build-clang build-fast build-older build-mutants build-kit
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: all programs build run run-training check check-real check-all check-vm soak fuzz dist deb release gpu-kit install uninstall clean clean-all distclean regenerate-specs

# Everything, optimized, also where `make run` has made a quick build before.
all: $(BUILD)/build.ninja
	@if [ -e $(BUILD)/quick ]; then \
	    echo 'The programs in $(BUILD)/ are not optimized yet: building them again.'; \
	    meson configure $(BUILD) $(OPTIMIZED) && rm -f $(BUILD)/quick; \
	fi
	ninja -C $(BUILD)

OPTIMIZED = --buildtype=debugoptimized -Dtests=false
QUICKLY   = -Doptimization=0 -Ddebug=false

$(BUILD)/build.ninja:
	meson setup $(BUILD) --prefix=$(PREFIX) -Dtests=false

# The programs that users, mgpud and nodes run, in a third of the time: not optimized where nothing has been built yet. The next `make` builds the rest, optimized.
programs:
	@if [ ! -e $(BUILD)/build.ninja ]; then \
	    meson setup $(BUILD) --prefix=$(PREFIX) -Dtests=false $(QUICKLY) && touch $(BUILD)/quick; \
	fi
	ninja -C $(BUILD) programs

# Names of targets that other schedulers had. The programs, by all their names, are in dist/ too.
build: all
	mkdir -p $(DIST)
	for program in mgpu mgpu-compat mgpu-slurm mgpud mgpu-agent mgpu-shepherd mgpu-tls mgpu-gpu-test mgpu-sim; do \
	    if [ -x $(BUILD)/$$program ]; then cp -f $(BUILD)/$$program $(DIST)/; fi; \
	done
	$(DIST)/mgpu -q compat install --force $(DIST)

clean-all distclean: clean

regenerate-specs: all

# Installs what is missing, builds the programs, and runs the examples on a private instance: a minute on two processors.
run:
	tools/install-packages run
	$(MAKE) programs
	examples/demo $(BUILD)

# The same with a training with torchrun on two of the GPUs; for it python3-torch is installed (300 MB).
run-training:
	tools/install-packages training
	$(MAKE) programs
	examples/demo --training $(BUILD)

# Installs what the tests need, builds three times, runs every test; the last line is "N passed, N failed".
# QUICK=1: one build and the short tests, within four minutes on two processors, and which are left out.
check:
	tools/install-packages $(if $(QUICK),quick,check)
	tools/run-tests $(if $(QUICK),--quick)

# Tests with programs of others (MUNGE, Open MPI over ssh, a mail system, Prometheus, podman), which it installs. For machines that may have them.
check-real:
	tools/install-packages check
	tools/run-tests --real

# Both, with one last line. AGAIN=1: what failed runs once more, alone, and is named. PART=house leaves out the tests of compat/ and lab/,
# PART=wings has only these: two machines share the work.
check-all:
	tools/install-packages check
	tools/run-tests --with-real $(if $(AGAIN),--again) $(if $(PART),--$(PART))

# The long campaigns: CASES random workloads of the scheduler (10000), CYCLES kills (300), MINUTES of constant load (20), FAILOVERS of controllers (100), SEED to replay one; mutations of
# the sources that tests (tools/mutants) and simulated histories (tools/sim-mutations) must notice; and nodes of
# the commit OLDER with this mgpud, and the other way round.
soak:
	tools/install-packages check
	tools/install-packages real
	tools/install-packages soak
	tools/run-tests --soak

# Fuzzers of every parser of foreign bytes (clang): HOURS in all, shared evenly (1). Findings are left in build-fuzz/.
HOURS ?= 1
fuzz:
	tools/install-packages check
	tests/fuzz/run $$(( $(HOURS) * 3600 / $$(ls tests/fuzz/corpus | wc -l) ))

# Boots small guests (qemu) for what this machine may not have: only cgroup v2, systemd, drivers of GPUs. Needs downloads.
check-vm:
	tools/install-packages vm
	tools/check-vm

# dist/mgpu-VERSION.tar.gz, which builds without git; and Debian packages, built from it.
dist:
	tools/dist $(DIST)

deb:
	tools/install-packages deb
	tools/make-deb $(DIST)

# What a release offers: packages, a tarball for other distributions, a wheel, checksums (docs/install.md).
release:
	tools/install-packages deb
	tools/install-packages release
	tools/release $(DIST)

# dist/gpu-kit: checks for a machine with a GPU and nothing else (docs/hardware.md).
gpu-kit:
	tools/install-packages run
	tools/gpu-kit $(DIST)

install: all
	meson configure $(BUILD) --prefix=$(PREFIX)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD)

# Removes what the last `make install` from this build folder installed. Jobs, settings and the store stay.
uninstall:
	ninja -C $(BUILD) uninstall
	@echo "Kept: /etc/mgpu, /var/lib/mgpu (the store and its jobs), and the user mgpu."

clean:
	rm -rf $(DIST) $(BUILD) $(CHECKS)
