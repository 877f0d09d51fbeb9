/* SPDX-License-Identifier: MIT */
/* What every way to submit has in common. */
#pragma once

#include <stdbool.h>

#include "controller/http/request.h"

/* -EPERM with a sentence when this mgpud cannot start jobs (or book adoptions) of who asks. */
int submit_check_owner(const struct request *request, bool is_adopted, struct error *err);

/* -ENOSPC or -EUCLEAN with a sentence while the store takes no new jobs; ends of jobs are stored. */
int submit_check_store(const struct controller *controller, struct error *err);
