/* SPDX-License-Identifier: MIT */
/* Rights that come from the system's user database, looked up only when a request needs them. */
#pragma once

#include "controller/serve_request.h"

/* May it give a job a priority above the default? Administrators may, and members of --priority-group. */
bool rights_may_raise(const struct request *request);
