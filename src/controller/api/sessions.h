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
 * Identifies the user of the session `cookie`. A valid one replaces the identity reported by the kernel; any
 * other is ignored. Calls `next` afterwards, possibly before this returns; answers a forged request itself.
 */
void sessions_identify(struct request *request, const char *cookie, void (*next)(struct request *request));

/* A sentence for users about why there is no page although one is configured; null: there is one. */
json_t *sessions_write_trouble(const struct controller *controller);
