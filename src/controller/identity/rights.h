/* SPDX-License-Identifier: MIT */
/* Permissions that depend on the system's user database. */
#pragma once

#include "controller/http/request.h"

/* The role of a known user. */
enum role rights_role(const struct serve *serve, uint32_t uid);

/*
 * True if the caller, whose role is known, is a guest: another user of the machine, of a mgpud that was
 * started without root and with --adopt-any-user. Guests acquire GPUs for their own processes (POST
 * /acquire), and see how many are in use. They neither submit, read nor control jobs, their own included, and
 * each has at most LIMIT_GUEST_ACQUIRES requests (core/concerns/quota.c).
 */
bool rights_is_guest(const struct request *request);

/* True if the caller's priorities count against the jobs of all users, because of its role or as a member of
 * --priority-group. */
bool rights_may_raise(const struct request *request);

/* Checks that the request's partitions exist and that its user may use them. -EINVAL, -EPERM. */
int rights_check_partition(const struct request *request, const struct job_ask *ask, struct error *err);
