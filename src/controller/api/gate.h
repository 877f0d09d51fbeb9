/* SPDX-License-Identifier: MIT */
/* The API for other machines: the same HTTP over TLS. */
#pragma once

#include "base/error.h"

struct controller;
struct api_gate;
struct tls_authority;

/* Takes ownership of the listening socket. */
int api_gate_new(struct controller *controller, const struct tls_authority *authority, int listen_fd,
    struct api_gate **ret, struct error *err);
/* The same for a standby, with the keys of the cluster in DIR; sets controller->cluster_pin. */
int api_gate_new_for_standby(
    struct controller *controller, const char *dir, int listen_fd, struct api_gate **ret, struct error *err);

void api_gate_free(struct api_gate *gate);
