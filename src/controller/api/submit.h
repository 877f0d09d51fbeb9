/* SPDX-License-Identifier: MIT */
/* What every way to submit has in common. */
#pragma once

#include <stdbool.h>

#include "controller/http/request.h"

/* -EPERM with a sentence when this mgpud cannot start jobs (or book adoptions) of who asks. */
int submit_check_owner(const struct request *request, bool is_adopted, struct error *err);
