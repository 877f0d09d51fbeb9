/* SPDX-License-Identifier: MIT */
/* The HTTP server: sockets, connections and the requests on them. What a request means is the business of
 * api/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/core/core.h"

struct controller;
struct request;
struct serve;

/* What the server asks of the API that it carries. */
struct serve_hooks {
    void (*dispatch)(struct request *request); // a request is complete: answer it, now or later
    bool (*is_admin)(const struct serve *serve, uint32_t uid); // may the reserved connections be its?
    void (*beat)(struct serve *serve);                         // every LIMIT_HEARTBEAT_S seconds
};

/* The program must ignore SIGPIPE: libevent writes with writev(2) also to clients that have left. The hooks
 * stay the caller's. */
struct serve *serve_new(struct controller *controller, const struct serve_hooks *hooks);
void serve_free(struct serve *serve);

/* Closes all connections and accepts none; requests are over, and what they wait for may still be answered.
 */
void serve_close(struct serve *serve);

/* Starts accepting on a bound and listening socket; on a unix socket the kernel says who the peer is. */
int serve_listen(struct serve *serve, int fd, bool is_unix, struct error *err);

/* Does it listen on TCP of this machine? */
bool serve_has_tcp(const struct serve *serve);

/* Takes over a connection of whom the kernel says nothing, from another machine. */
void serve_adopt(struct serve *serve, int fd);

/* The core's answer to a request that waits for it. */
void serve_reply(struct serve *serve, void *request, const struct core_answer *answer);

/* The name of a user of this machine, valid until the next call; NULL when there is none, or no API yet. */
const char *serve_user_name(struct serve *serve, uint32_t uid);

/* The outcome of a commit is unknown: every open request is told 503 with "outcome": "unknown". Harmless on
 * NULL. */
void serve_fail_all(struct serve *serve, const struct error *err);
