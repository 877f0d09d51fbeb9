/* SPDX-License-Identifier: MIT */
/* The HTTP server: sockets, connections and requests. The meaning of a request is defined in api/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/core/core.h"

struct bufferevent;
struct controller;
struct message_job_client;
struct request;
struct serve;

/* Callbacks to the API. */
struct serve_hooks {
    void (*dispatch)(struct request *request); // a request is complete: answer it, immediately or later
    bool (*is_admin)(const struct serve *serve, uint32_t uid); // may this user use the reserved connections?
    void (*beat)(struct serve *serve);                         // every LIMIT_HEARTBEAT_S seconds
};

/* The program must ignore SIGPIPE, because libevent also writes to clients that have left. `hooks` is
 * borrowed. */
struct serve *serve_new(struct controller *controller, const struct serve_hooks *hooks);
void serve_free(struct serve *serve);

/* Closes all connections and accepts none; requests end, and pending results for them may still arrive. */
void serve_close(struct serve *serve);

/* Starts accepting on a bound and listening socket; on a unix socket the kernel identifies the peer. */
int serve_listen(struct serve *serve, int fd, bool is_unix, struct error *err);

/* Does it listen on TCP of this machine? */
bool serve_has_tcp(const struct serve *serve);

/* Takes ownership of a connection from another machine, whose peer the kernel cannot identify. */
void serve_adopt(struct serve *serve, int fd);

/* Takes ownership of a connection that a node has passed on for a command in a job, and of which bytes may
 * have been received. */
void serve_adopt_job(struct serve *serve, struct bufferevent *stream, const char *node,
    const struct message_job_client *client);

/* A commit has ended: requests may have waited for it. NULL is allowed. */
void serve_resume(struct serve *serve);

/* The core's answer to a waiting request. */
void serve_reply(struct serve *serve, void *request, const struct core_answer *answer);

/* The name of a user of this machine, valid until the next call; NULL if there is none, or no API yet. */
const char *serve_user_name(struct serve *serve, uint32_t uid);

/* The outcome of a commit is unknown: every open request gets 503 with "outcome": "unknown". NULL is
 * allowed. */
void serve_fail_all(struct serve *serve, const struct error *err);
