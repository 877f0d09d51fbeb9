/* SPDX-License-Identifier: MIT */
/* A node has one event at a time: its failure (attempt 0) or its return (attempt 1). */
#include "lab/sim/failures.h"

#include <math.h>

#include "sched/cluster/cluster.h"

enum { FAILS, RETURNS };

static void draw_failure(struct failures *failures, uint32_t node, int64_t from_ms)
{
    double after_ms = -failures->mean_ms * log1p(-random_part(&failures->random));
    if (after_ms < (double)(failures->last_ms - from_ms))
        heap_push(&failures->events,
            (struct heap_item){ .at_ms = from_ms + 1 + (int64_t)after_ms, .number = node, .detail = FAILS });
}

void failures_init(struct failures *failures, size_t n_nodes, int64_t mean_ms, int64_t repair_ms,
    int64_t last_ms, uint64_t seed)
{
    *failures = (struct failures){
        .random = { seed }, .mean_ms = (double)mean_ms, .repair_ms = repair_ms, .last_ms = last_ms
    };
    for (uint32_t node = 0; mean_ms > 0 && node < n_nodes; node++)
        draw_failure(failures, node, 0);
}

void failures_clear(struct failures *failures)
{
    heap_clear(&failures->events);
}

int64_t failures_next_ms(const struct failures *failures)
{
    return failures->events.count > 0 ? failures->events.items[0].at_ms : TIME_NEVER;
}

bool failures_take(struct failures *failures, int64_t now_ms, uint32_t *ret_node, bool *ret_is_up)
{
    if (failures_next_ms(failures) > now_ms)
        return false;
    struct heap_item event = heap_pop(&failures->events);
    *ret_node = event.number;
    *ret_is_up = event.detail == RETURNS;
    if (*ret_is_up)
        draw_failure(failures, event.number, event.at_ms);
    else
        heap_push(&failures->events,
            (struct heap_item){
                .at_ms = event.at_ms + failures->repair_ms, .number = event.number, .detail = RETURNS });
    return true;
}
