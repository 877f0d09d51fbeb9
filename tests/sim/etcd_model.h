/* SPDX-License-Identifier: MIT */
/* An etcd in memory, behind a libcurl that is none: transactions as its JSON gateway has them, and faults. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controller/cluster/curl_library.h"

struct etcd_model;

/* `delay`: requests until one that happens late does so. `on_request` is called in the middle of every
 * request. One model exists at a time. */
struct etcd_model *etcd_model_new(uint64_t seed, uint32_t delay, void (*on_request)(void *arg), void *arg);
void etcd_model_free(struct etcd_model *model);

const struct curl_library *etcd_model_curl(struct etcd_model *model);

/* No faults, and nothing in the middle, until it is false again. What is to happen late happens now. */
void etcd_model_spare(struct etcd_model *model, bool is_spared);

/* The leader's key: its create revision, 0 if there is none; a new one; and the end of its lease. */
int64_t etcd_model_leader(const struct etcd_model *model);
int64_t etcd_model_claim(struct etcd_model *model);
void etcd_model_end_lease(struct etcd_model *model);

/* The create revision of the leader's key when this key was created; -1 if the key does not exist (any more).
 */
int64_t etcd_model_leader_at(const struct etcd_model *model, const char *key);

uint32_t etcd_model_random(struct etcd_model *model);
