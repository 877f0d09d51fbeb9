/* SPDX-License-Identifier: MIT */
/* Start-up steps that need root when started as root, and dropping root at their end. */
#pragma once

#include "base/detach.h"
#include "base/error.h"
#include "base/system_mgpud.h"
#include "controller/controller.h"
#include "controller/privileges.h"

struct prepared {
    int lock_fds[3]; // RUN, STATE, STATE/node; held until exit
    struct gpu_claims claims;
    int api_fd, link_fd; // listening; the API takes api_fd
    struct detached detached;
    struct user_ids user;
    char *store_dir;
};

#define PREPARED_EMPTY                                                                                       \
    {                                                                                                        \
        .lock_fds = { -1, -1, -1 }, .api_fd = -1, .link_fd = -1, .detached = { -1, -1 }                      \
    }

/* Also sets controller->agent, tcp and admin_uid. With --detach, the calling parent process does not return
 * from here. */
int prepare(struct controller *controller, struct prepared *ret, struct error *err);

/* Shows clients when this mgpud left (cli/api/absence.c). */
void prepare_note_stop(const struct prepared *prepared);

void prepare_clear(struct prepared *prepared);
