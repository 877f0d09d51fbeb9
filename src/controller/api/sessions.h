/* SPDX-License-Identifier: MIT */
/* Sessions of the web page: a one-time address is exchanged for a cookie, and the cookie identifies the
 * user. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct controller;
struct request;

/* The secret in the request's session cookie, which the caller frees, or NULL. */
char *sessions_cookie(const struct request *request);

/*
 * Finds out whose session `cookie` is. A good one replaces what the kernel says of the caller; any other is
 * ignored. Calls `next` when that is settled, maybe before this returns; answers a forged request itself.
 */
void sessions_identify(struct request *request, const char *cookie, void (*next)(struct request *request));

/* Why there is no page although one is wanted, for people; null: there is one. */
json_t *sessions_write_trouble(const struct controller *controller);
