/* SPDX-License-Identifier: MIT */
/* Finds the server of srun and tui. */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/options/talk.h"
#include "wire/http_client.h"

#define SRUN_URL_VARIABLE "GPUSCHED_URL"
#define SRUN_PORT         "9123"

/* Names of mgpu in hints -> those of srun. */
extern const struct wording srun_words[];

/* A connection to the server at GPUSCHED_URL. Without that variable the socket is used, which is equivalent
 * to the port and preferable if there is none. If the server belongs to another user, this is reported
 * once. */
int srun_server_connect(struct call *call, struct http_client **ret, struct error *err);
