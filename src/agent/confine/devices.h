/* SPDX-License-Identifier: MIT */
/* The part of confinement that is about device nodes, for kinds that have cgroups of version 2. */
#pragma once

#include "agent/confine/confine.h"
#include "agent/confine/device_filter.h"

/* As the member `can_guard` of struct confine; `instance_fd` is a directory in which cgroups may be made. */
int confine_devices_probe(int instance_fd, struct error *err);

/* As the member `guard`; `name` is the attempt's directory below `instance_fd`. */
int confine_devices_guard(struct device_filters *filters, int instance_fd, const char *name,
    const struct launch_spec *spec, struct error *err);
