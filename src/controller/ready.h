/* SPDX-License-Identifier: MIT */
/* Opens the API, once jobs and nodes are known. */
#pragma once

#include "base/error.h"

struct controller;

/* Serves at the unix socket `api_fd`, which it takes over, and at the TCP port; watches that the socket keeps
 * its name; otherwise the loop ends with EX_TEMPFAIL. */
int ready_open(struct controller *controller, int api_fd, struct error *err);
