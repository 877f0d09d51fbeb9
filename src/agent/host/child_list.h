/* SPDX-License-Identifier: MIT */
/* Child processes that each serve one request: counted, reaped, and forgotten at their end. */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

struct child_list;

struct child_list *child_list_new(struct event_base *base);

/* Takes ownership of the pidfd of a child, which serves this user or job. */
void child_list_add(struct child_list *list, int pidfd, uint64_t served);

size_t child_list_count(const struct child_list *list);
size_t child_list_count_of(const struct child_list *list, uint64_t served);

/* The processes continue. NULL is allowed. */
void child_list_free(struct child_list *list);
