/* SPDX-License-Identifier: MIT */
/* The Cookie header of a request (RFC 6265, 5.4). */
#pragma once

/* The value of the first cookie with that name, which the caller frees; NULL: there is none. `cookies` NULL:
 * no header. */
char *cookie_value(const char *cookies, const char *name);
