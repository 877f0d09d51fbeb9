/* SPDX-License-Identifier: MIT */
/* A request to a controller from a machine that need not be a node: JOIN or PROBE. Blocks. */
#pragma once

#include <netdb.h>
#include <openssl/types.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"
#include "wire/tls/join_token.h"

struct join_talk {
    SSL *ssl;
    int fd;
    char *where;
    int64_t until_boot_ms;
};

/* Connects to the server with this pin. */
int join_talk_open(const struct address *address, const uint8_t pin[TLS_PIN_SIZE], int64_t until_boot_ms,
    struct join_talk *ret, struct error *err);

/* Sends one record and receives the answer of that type. A refusal by the controller becomes `err`, with its
 * hint and its errno. */
int join_talk_ask(struct join_talk *talk, const struct record_type *type, const void *message,
    const struct record_type *answer_type, void *ret_answer, struct error *err);

void join_talk_close(struct join_talk *talk);

/* The token's secret as it appears in messages. */
void join_talk_secret(const struct join_token *token, char text[2 * JOIN_SECRET_SIZE + 1]);
