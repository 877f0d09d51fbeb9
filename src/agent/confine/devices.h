/* SPDX-License-Identifier: MIT */
/* Device access as part of confinement, for kinds with cgroup v2. */
#pragma once

#include "agent/confine/confine.h"
#include "agent/confine/device_filter.h"

/* Implements `can_guard` of struct confine; `instance_fd` is a directory in which cgroups can be created. */
int confine_devices_probe(int instance_fd, struct error *err);

/* Implements `guard`; `name` is the attempt's directory below `instance_fd`. */
int confine_devices_guard(struct device_filters *filters, int instance_fd, const char *name,
    const struct launch_spec *spec, struct error *err);
