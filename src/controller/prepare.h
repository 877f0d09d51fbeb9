/* SPDX-License-Identifier: MIT */
/* Everything that needs root when there is root; afterwards there is none. */
#pragma once

#include "base/error.h"
#include "controller/controller.h"
#include "base/detach.h"
#include "controller/privileges.h"

struct prepared {
    int lock_fds[3];             // RUN, STATE, STATE/node; held for as long as we live
    int api_fd, link_fd, tcp_fd; // listening; api_fd and tcp_fd are given to the API
    struct detached detached;
    struct user_ids user;
    char *store_dir;
};

#define PREPARED_EMPTY                                                                                       \
    {                                                                                                        \
        .lock_fds = { -1, -1, -1 }, .api_fd = -1, .link_fd = -1, .tcp_fd = -1, .detached = { -1, -1 }        \
    }

/* Sets controller->agent and admin_uid too. With --detach the caller's parent stays behind in here. */
int prepare(struct controller *controller, struct prepared *ret, struct error *err);

void prepare_clear(struct prepared *prepared);
