/* SPDX-License-Identifier: MIT */
/* The addresses of several controllers on other machines, as reported by one of them: stored in a file of the
 * user for each cluster, so that any address given once leads to all. */
#pragma once

/* "https://A,B#PIN" with the addresses that are kept for this pin, those first. The caller frees it. */
char *controllers_complete(const char *host);

/* Keeps the list "HOST:PORT,..." for the cluster of `host`, if it is a list and a new one. Without a place to
 * keep it, nothing is lost but the list. */
void controllers_keep(const char *host, const char *list);
