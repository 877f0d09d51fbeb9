/* SPDX-License-Identifier: MIT */
/* A client of the API that speaks over real sockets while the same loop runs. Every wait has a deadline. */
#pragma once

#include "serve_harness.h"

struct answer {
    unsigned status; // 0: none came
    char *head;      // headers as text
    char *body;      // terminated
    size_t length;   // of the body
    bool is_cut;     // the connection ended before the answer did
};

int client_connect(struct harness *harness);
int client_connect_tcp(struct harness *harness);

/* Sends everything, running the loop meanwhile; false when the other side does not take it. */
bool client_send(struct harness *harness, int fd, const void *bytes, size_t length);

/* Reads one whole answer. `is_head`: to a HEAD, which has no body. */
struct answer client_receive(struct harness *harness, int fd, bool is_head);

/* Reads until `text` has come, at most some seconds; the caller frees what came so far. */
char *client_read_until(struct harness *harness, int fd, const char *text);

/* As client_read_until, for an answer in chunks: what they hold so far, without its head. */
char *client_read_chunks(struct harness *harness, int fd, const char *text);

/* True when the other side closes the connection. */
bool client_is_closed(struct harness *harness, int fd);

/* Connects, sends, receives, closes. */
struct answer client_ask(struct harness *harness, const char *request);
struct answer client_get(struct harness *harness, const char *path);
struct answer client_post(struct harness *harness, const char *path, const char *body);

void answer_clear(struct answer *answer);

/* The text of a string member of the body, or "" (valid until the answer is cleared with the next call). */
const char *answer_string(const struct answer *answer, const char *key);
int64_t answer_integer(const struct answer *answer, const char *key);
bool answer_has(const struct answer *answer, const char *text);
