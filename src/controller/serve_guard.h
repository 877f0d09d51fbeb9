/* SPDX-License-Identifier: MIT */
/* What a request over TCP must not be: one that a browser was tricked into. */
#pragma once

#include "base/error.h"
#include "controller/serve_parser.h"

/*
 * `listen` is the address mgpud was told to listen on (HOST:PORT), or NULL. Refuses a Host that is not this
 * machine's loopback or `listen`'s (DNS rebinding) and an Origin that is not the Host (cross-site requests):
 * -EPERM; a missing Host with HTTP/1.1: -EPROTO.
 */
int guard_check_message(const struct http_message *message, const char *listen, struct error *err);
