/* SPDX-License-Identifier: MIT */
/*
 * The keys with which the caller's ssh and the sshd that is started in a job know each other. Both pairs are
 * the caller's own, made once, below ~/.config/mgpu/ssh; sshd gets its half over mgpu's authenticated
 * connection.
 */
#pragma once

#include "base/error.h"

struct ssh_keys {
    char *folder;
    char *host_key; // private key of the host, for sshd
    char *user_key; // public key of the user, for sshd
};

/* Reads them, after making those that are missing with ssh-keygen. */
int ssh_keys_load(struct ssh_keys *ret, struct error *err);
void ssh_keys_clear(struct ssh_keys *keys);

#define SSH_KEYS_HOST_ALIAS "mgpu" // name of all jobs in known_hosts
