/* SPDX-License-Identifier: MIT */
/* Shared by all ways to submit a job. */
#pragma once

#include <stdbool.h>

#include "controller/http/request.h"

/* -EPERM with a sentence if this mgpud cannot start jobs (or book adoptions) for the caller. */
int submit_check_owner(const struct request *request, bool is_adopted, struct error *err);

/* -ENOSPC or -EUCLEAN with a sentence while the store takes no new jobs; ends of jobs are stored. */
int submit_check_store(const struct controller *controller, struct error *err);
