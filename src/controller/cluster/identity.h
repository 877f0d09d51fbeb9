/* SPDX-License-Identifier: MIT */
/* The keys and certificates that all controllers of a cluster share. For the leader, before it opens its
 * store. */
#pragma once

#include "base/error.h"

struct cluster;

/* Writes those of etcd to DIR: 1, or 0 if etcd has none yet. */
int cluster_identity_fetch(struct cluster *cluster, const char *dir, struct error *err);

/* Puts those of DIR into etcd. */
int cluster_identity_put(struct cluster *cluster, const char *dir, struct error *err);
