/* SPDX-License-Identifier: MIT */
/* Identifies a step of an attempt: in messages, in files, and as the name of a spool entry. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/record.h"

#define SPOOL_NAME_SIZE 64

/* A step of an attempt on one of its nodes. Messages and files about it have a member `id`, followed by the
 * token that the controller assigned to the attempt. */
struct spool_id {
    uint64_t job;
    uint32_t attempt, step, rank;
};

/* The first rows of their field tables. */
#define ATTEMPT_FIELD(tag_, kind_, type_, member_)                                                           \
    {                                                                                                        \
        .tag = (tag_), .kind = (kind_), .name = #member_, .offset = offsetof(type_, id.member_)              \
    }
#define ATTEMPT_FIELDS(type)                                                                                 \
    ATTEMPT_FIELD(1, RECORD_U64, type, job), ATTEMPT_FIELD(2, RECORD_U32, type, attempt),                    \
        ATTEMPT_FIELD(3, RECORD_U32, type, step), ATTEMPT_FIELD(4, RECORD_U32, type, rank),                  \
        RECORD_FIELD(5, RECORD_U64, type, token, 0)

bool spool_id_equal(const struct spool_id *a, const struct spool_id *b);

/* By job, attempt, step and rank: negative, 0 or positive, as for qsort(3). */
int spool_id_compare(const struct spool_id *a, const struct spool_id *b);

/* The index of the first of `count` elements of `list` whose id is not before `id`; the list is sorted by id.
 * `id_at` returns the id of an element. */
size_t spool_id_position(const void *list, size_t count,
    const struct spool_id *(*id_at)(const void *list, size_t index), const struct spool_id *id);

/* "42.1.0.0" */
void spool_name(const struct spool_id *id, char name[SPOOL_NAME_SIZE]);

/* Parses a name; false unless it is exactly what spool_name would write. */
bool spool_parse_name(const char *name, struct spool_id *ret_id);
