/* SPDX-License-Identifier: MIT */
/* What a connection is told that is not accepted. */
#pragma once

#include <event2/bufferevent.h>

#include "base/error.h"

/* Sends one answer, as far as possible without waiting, and closes the connection. */
void refusal_send(struct bufferevent *stream, const struct error *err);
