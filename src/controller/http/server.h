/* SPDX-License-Identifier: MIT */
/* The HTTP API: requests in become calls of the core, its answers and events go out. */
#pragma once

#include <stdbool.h>

#include "controller/core/core.h"

struct controller;
struct serve;

/* The program must ignore SIGPIPE: libevent writes with writev(2) also to clients that have left. */
struct serve *serve_new(struct controller *controller);
void serve_free(struct serve *serve);

/* Closes all connections and accepts none; requests are over, and what they wait for may still be answered.
 */
void serve_close(struct serve *serve);

/* Starts accepting on a bound and listening socket; on a unix socket the kernel says who the peer is. */
int serve_listen(struct serve *serve, int fd, bool is_unix, struct error *err);

/* Takes over a connection of whom the kernel says nothing, from another machine. */
void serve_adopt(struct serve *serve, int fd);

/* Effects of the core. */
void serve_reply(struct serve *serve, void *request, const struct core_answer *answer);
void serve_publish(struct serve *serve, const struct job_event *event, const struct job *job);

/* The job as GET /jobs shows it, as text that the caller frees; NULL while there is no API. */
char *serve_describe(struct serve *serve, const struct job *job);

/* The name of a user of this machine, valid until the next call; NULL when there is none, or no API yet. */
const char *serve_user_name(struct serve *serve, uint32_t uid);

/* The outcome of a commit is unknown: every open request is told 503 with "outcome": "unknown". Harmless on
 * NULL. */
void serve_fail_all(struct serve *serve, const struct error *err);
