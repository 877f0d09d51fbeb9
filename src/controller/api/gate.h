/* SPDX-License-Identifier: MIT */
/* The API for other machines: TLS, and behind it the same HTTP. */
#pragma once

#include "base/error.h"

struct controller;
struct api_gate;
struct tls_authority;

/* Takes the listening socket over. */
int api_gate_new(struct controller *controller, const struct tls_authority *authority, int listen_fd,
    struct api_gate **ret, struct error *err);
void api_gate_free(struct api_gate *gate);
