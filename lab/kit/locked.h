/* SPDX-License-Identifier: MIT */
/* The device nodes of the machine closed to logins for a moment (mgpu gpu lock), and opened again whatever
 * happens to the kit meanwhile. */
#pragma once

#include "lab/kit/kit.h"

int locked_begin(struct kit *kit, struct error *err);

/* Allowed if they are not locked; called at the kit's end too. */
int locked_end(struct kit *kit, struct error *err);
