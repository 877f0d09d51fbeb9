/* SPDX-License-Identifier: MIT */
/* The name of this machine as a node, which outlives changes of its host name. */
#pragma once

#include "base/error.h"
#include "controller/config/options.h"

/*
 * Replaces options->node by the name in STATE/node/name, unless a name was set explicitly, and keeps that for
 * the next start; the first start keeps the host name. Needs the lock of STATE/node. -EBUSY: jobs run here
 * under the former name, which another name would end.
 */
int own_name_resolve(struct controller_options *options, struct error *err);
