/* SPDX-License-Identifier: MIT */
#include "job/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/ask.h"
#include "job/cluster_change.h"
#include "job/job_nodes.h"
#include "job/spec.h"
#include "job/step.h"

static const struct record_field grant_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct gpu_grant, index, 0),
    RECORD_FIELD(2, RECORD_STRING, struct gpu_grant, uuid, 96),
    RECORD_FIELD(3, RECORD_U32, struct gpu_grant, slot, 0),
    RECORD_FIELD(4, RECORD_SIZE, struct gpu_grant, memory, 0),
    RECORD_FIELD(5, RECORD_U32, struct gpu_grant, share, 0),
    RECORD_FIELD(6, RECORD_STRING, struct gpu_grant, node, SPEC_NAME_MAX),
};

const struct record_type gpu_grant_record = RECORD_TYPE(2, "gpu grant", struct gpu_grant, grant_fields);

static const struct record_field credential_fields[] = {
    RECORD_FIELD(481, RECORD_U64, struct event_credential, token, 0),
    RECORD_FIELD(482, RECORD_U64, struct event_credential, max_gpu_ms, 0),
    RECORD_FIELD(483, RECORD_I64, struct event_credential, expires_ms, 0),
};

static const struct record_type credential_record =
    RECORD_TYPE(480, "credential", struct event_credential, credential_fields);

static const struct record_field event_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct job_event, seq, 0),
    RECORD_FIELD(2, RECORD_U64, struct job_event, job, 0),
    RECORD_FIELD(3, RECORD_U32, struct job_event, attempt, 0),
    RECORD_FIELD(4, RECORD_U32, struct job_event, type, 0),
    RECORD_FIELD(5, RECORD_I64, struct job_event, wall_ms, 0),
    RECORD_FIELD(6, RECORD_I64, struct job_event, boot_ms, 0),
    RECORD_FIELD(7, RECORD_U32, struct job_event, uid, 0),
    RECORD_FIELD(8, RECORD_U32, struct job_event, gid, 0),
    RECORD_FIELD(9, RECORD_U64, struct job_event, token, 0),
    RECORD_FIELD(10, RECORD_STRING, struct job_event, node, SPEC_NAME_MAX),
    RECORD_FIELD(11, RECORD_STRING, struct job_event, boot_id, 64),
    RECORD_SUBLIST(12, struct job_event, gpus, EVENT_GPUS_MAX, &gpu_grant_record),
    RECORD_FIELD(13, RECORD_STRING, struct job_event, log_path, SPEC_PATH_MAX),
    RECORD_FIELD(14, RECORD_U32, struct job_event, end, 0),
    RECORD_FIELD(15, RECORD_I32, struct job_event, exit_code, 0),
    RECORD_FIELD(16, RECORD_U32, struct job_event, signal, 0),
    RECORD_FIELD(17, RECORD_I64, struct job_event, started_wall_ms, 0),
    RECORD_FIELD(18, RECORD_I64, struct job_event, run_ms, 0),
    RECORD_FIELD(19, RECORD_U64, struct job_event, cpu_ms, 0),
    RECORD_FIELD(20, RECORD_U64, struct job_event, max_rss, 0),
    RECORD_FIELD(21, RECORD_U64, struct job_event, log_bytes, 0),
    RECORD_FIELD(22, RECORD_STRING, struct job_event, text, EVENT_TEXT_MAX),
    RECORD_FIELD(23, RECORD_U32, struct job_event, reason, 0),
    RECORD_FIELD(24, RECORD_U32, struct job_event, hold, 0),
    RECORD_FIELD(25, RECORD_U64, struct job_event, array_job, 0),
    RECORD_FIELD(26, RECORD_U32, struct job_event, array_index, 0),
    RECORD_FIELD(27, RECORD_U64, struct job_event, element, 0),
    RECORD_FIELD(28, RECORD_U32, struct job_event, cpu_milli, 0),
    RECORD_FIELD(29, RECORD_U64, struct job_event, memory, 0),
    RECORD_FIELD(30, RECORD_STRING, struct job_event, name, SPEC_NAME_MAX),
    RECORD_SUBLIST(31, struct job_event, ask, 1, &job_ask_record),
    RECORD_SUBLIST(32, struct job_event, change, 1, &cluster_change_record),
    RECORD_SUBLIST(33, struct job_event, usage, 1, &job_usage_record),
    RECORD_FIELD(46, RECORD_U32, struct job_event, idle_level, 0),
    RECORD_FIELD(47, RECORD_I64, struct job_event, idle_ms, 0),
    RECORD_FIELD(60, RECORD_U32, struct job_event, cause, 0),
    RECORD_FIELD(61, RECORD_I64, struct job_event, retry_ms, 0),
    RECORD_FIELD(62, RECORD_U32, struct job_event, sent, 0),
    RECORD_SUBLIST(80, struct job_event, nodes, JOB_NODES_MAX, &job_node_record),
    RECORD_FIELD(85, RECORD_I64, struct job_event, node_lease_ms, 0),
    RECORD_FIELD(86, RECORD_U32, struct job_event, stop_terms, 0),
    RECORD_FIELD(87, RECORD_I64, struct job_event, stop_grace_ms, 0),
    RECORD_SUBLIST(90, struct job_event, steps, 1, &job_step_record),
    RECORD_FIELD(340, RECORD_U32, struct job_event, park_cause, 0),
    RECORD_FIELD(341, RECORD_I64, struct job_event, park_return_ms, 0),
    RECORD_FIELD(342, RECORD_SIZE, struct job_event, park_bytes, 0),
    RECORD_FIELD(343, RECORD_SIZE, struct job_event, park_rank_bytes, 0),
    RECORD_FIELD(344, RECORD_U32, struct job_event, terms, 0),
    RECORD_FIELD(345, RECORD_U32, struct job_event, park_number, 0),
    RECORD_FIELD(346, RECORD_U32, struct job_event, park_seen, 0),
    RECORD_FIELD(347, RECORD_U64, struct job_event, park_guest, 0),
    RECORD_FIELD(348, RECORD_U32, struct job_event, is_early, 0),
    RECORD_FIELD(349, RECORD_I64, struct job_event, waited_ms, 0),
    RECORD_FIELD(350, RECORD_U64, struct job_event, behind, 0),
    RECORD_FIELD(351, RECORD_I64, struct job_event, parked_ms, 0),
    RECORD_FIELD(410, RECORD_STRING, struct job_event, signals, EVENT_TEXT_MAX),
    RECORD_FIELD(411, RECORD_U32, struct job_event, scope, 0),
    RECORD_SUBLIST(480, struct job_event, credential, 1, &credential_record),
    RECORD_FIELD(490, RECORD_U32, struct job_event, account, 0),
};

const struct record_type job_event_record = RECORD_TYPE(3, "job event", struct job_event, event_fields);

void job_event_clear(struct job_event *event)
{
    record_clear(&job_event_record, event);
}

struct gpu_grant *gpu_grants_add(
    struct record_list *grants, uint32_t index, const char *uuid, uint32_t slot, uint64_t memory)
{
    grants->items = xreallocarray(grants->items, grants->count + 1, sizeof(struct gpu_grant));
    struct gpu_grant *grant = (struct gpu_grant *)grants->items + grants->count++;
    *grant = (struct gpu_grant){ .index = index, .uuid = xstrdup(uuid), .slot = slot, .memory = memory };
    return grant;
}

void gpu_grants_copy(struct record_list *to, const struct record_list *from)
{
    *to = (struct record_list){ 0 };
    if (from->count == 0)
        return;
    to->items = xcalloc(from->count, sizeof(struct gpu_grant));
    for (; to->count < from->count; to->count++)
        record_copy(&gpu_grant_record, (struct gpu_grant *)to->items + to->count,
            (const struct gpu_grant *)from->items + to->count);
}

void gpu_grants_clear(struct record_list *grants)
{
    struct gpu_grant *items = grants->items;
    for (size_t i = 0; i < grants->count; i++)
        record_clear(&gpu_grant_record, &items[i]);
    free(items);
    *grants = (struct record_list){ 0 };
}

uint64_t gpu_grants_milli(const struct record_list *grants)
{
    const struct gpu_grant *items = grants->items;
    uint64_t milli = 0;
    for (size_t i = 0; i < grants->count; i++)
        milli += items[i].share > 0 ? items[i].share : ASK_SHARE_WHOLE;
    return milli;
}
