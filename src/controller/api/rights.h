/* SPDX-License-Identifier: MIT */
/* Rights that come from the system's user database. */
#pragma once

#include "controller/http/request.h"

/* The role of a user who is known. */
enum role rights_role(const struct serve *serve, uint32_t uid);

/* Do the priorities that it gives count before the jobs of all users, because of its role or as a member of
 * --priority-group? */
bool rights_may_raise(const struct request *request);
