/* SPDX-License-Identifier: MIT */
/* Resource usage of running jobs, from the last reports of their agents. */
#pragma once

struct core;
struct core_entry;
struct record_list;

void core_take_usages(struct core *core, const struct record_list *usages); // struct attempt_usage
void core_drop_usage(struct core_entry *entry);
