/* SPDX-License-Identifier: MIT */
/* The parts of a session: its connection (session.c) and its input (session_keys.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "cli/follow/foreign.h"
#include "cli/follow/idle_news.h"
#include "cli/follow/session.h"
#include "cli/follow/session_stream.h"
#include "cli/term/raw_terminal.h"

struct session {
    struct call *call;
    const struct session_options *options;
    struct http_client *http; // NULL: not joined
    struct buffer input;      // from the other side, from `taken` on
    size_t taken;
    struct buffer pending[2]; // for stdout and stderr, from `written` on
    size_t written[2];
    struct foreign filters[2];
    struct session_stream stream;
    bool is_start_unknown; // an exec: the connection was lost before its answer
    uint64_t position;     // of the output: position of the next byte
    int signal_fd;
    int terminal_fd; // standard output again, which never blocks; -1: it is no terminal
    bool has_joined; // once
    bool is_stdin_over;
    uint64_t keyed;          // bytes read from standard input
    uint64_t unused;         // of these, those that the other side has not read
    bool is_over, is_asking; // to cancel the job: y or n?
    enum session_result result;
    int status;
    struct detach_keys keys;
    int64_t keys_ms; // boot clock: when keys held back are sent
    struct raw_terminal raw;
    struct idle_news news;
};

/* Prints a message between lines of the job, on a terminal that may be raw. */
void session_say(const char *text);

void session_finish(struct session *session, enum session_result result);
void session_detach(struct session *session);
void session_put_frame(struct session *session, enum terminal_frame type, const void *payload, size_t length);

/* Tells the other side how large this terminal is. */
void session_put_size(struct session *session);

/* Standard input is readable. */
void session_on_stdin(struct session *session);

/* Sends keys that were held back, when their time is up. */
void session_expire_keys(struct session *session);
