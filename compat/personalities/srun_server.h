/* SPDX-License-Identifier: MIT */
/* Which server srun and tui ask. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/options/talk.h"
#include "wire/http_client.h"

#define SRUN_URL_VARIABLE "GPUSCHED_URL"
#define SRUN_PORT         "9123"

/* Names of mgpu in hints -> those of srun. */
extern const struct wording srun_words[];

/* A connection to the server at GPUSCHED_URL; without that variable the socket does as well as the port, and
 * better where there is none. The server may be another user's, which is said once. */
int srun_server_connect(struct call *call, struct http_client **ret, struct error *err);
