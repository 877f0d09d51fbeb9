/* SPDX-License-Identifier: MIT */
/* The type ids are above those of the messages between programs (wire/message.h). */
#include "wire/requests.h"

#include "job/job_nodes.h"
#include "job/spec.h"
#include "job/step.h"
#include "wire/limits.h"

static const struct record_field cancel_fields[] = {
    RECORD_FIELD(1, RECORD_I64, struct cancel_request, grace_s, 0),
    RECORD_FIELD(50, RECORD_BOOL, struct cancel_request, kill, 0),
    RECORD_FIELD(51, RECORD_BOOL, struct cancel_request, waiting, 0),
};
const struct record_type cancel_request_record =
    RECORD_TYPE(200, "cancel request", struct cancel_request, cancel_fields);

static const struct record_field token_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct token_request, name, LIMIT_TOKEN_NAME_BYTES),
    RECORD_FIELD(2, RECORD_U64, struct token_request, expires_s, 0),
    RECORD_FIELD(240, RECORD_STRING, struct token_request, host, 256),
    RECORD_FIELD(488, RECORD_STRINGS, struct token_request, scopes, 256),
    RECORD_FIELD(489, RECORD_MILLI, struct token_request, max_gpu_hours, 0),
};
const struct record_type token_request_record =
    RECORD_TYPE(201, "token request", struct token_request, token_fields);

const struct record_type empty_request_record = {
    .id = 202, .name = "empty request", .size = sizeof(struct empty_request), .fields = NULL, .n_fields = 0
};

static const struct record_field mark_fields[] = {
    RECORD_FIELD(1, RECORD_STRINGS, struct mark_request, gpus, LIMIT_MARK_GPUS_BYTES),
    RECORD_FIELD(2, RECORD_STRING, struct mark_request, reason, LIMIT_REASON_BYTES),
    RECORD_FIELD(3, RECORD_TIME, struct mark_request, until, 0),
};
const struct record_type mark_request_record =
    RECORD_TYPE(203, "pause request", struct mark_request, mark_fields);

static const struct record_field reserve_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct reserve_request, gpus, 0),
    RECORD_FIELD(2, RECORD_STRING, struct reserve_request, gpu_ids, 4096),
    RECORD_FIELD(3, RECORD_STRINGS, struct reserve_request, users, LIMIT_RESERVE_USERS_BYTES),
    RECORD_FIELD(4, RECORD_TIME, struct reserve_request, from, 0),
    RECORD_FIELD(5, RECORD_I64, struct reserve_request, for_s, 0),
    RECORD_FIELD(6, RECORD_STRING, struct reserve_request, name, 128),
};
const struct record_type reserve_request_record =
    RECORD_TYPE(204, "reserve request", struct reserve_request, reserve_fields);

static const struct record_field policy_fields[] = {
    RECORD_FIELD(1, RECORD_STRINGS, struct policy_request, gpus, LIMIT_MARK_GPUS_BYTES),
    RECORD_FIELD(2, RECORD_STRING, struct policy_request, policy, 32),
};
const struct record_type policy_request_record =
    RECORD_TYPE(205, "policy request", struct policy_request, policy_fields);

static const struct record_field exec_fields[] = {
    RECORD_FIELD(1, RECORD_STRINGS, struct exec_request, command, SPEC_COMMAND_MAX),
    RECORD_FIELD(2, RECORD_ENV, struct exec_request, env, SPEC_ENV_MAX),
    RECORD_FIELD(3, RECORD_STRING, struct exec_request, cwd, SPEC_PATH_MAX),
    RECORD_FIELD(4, RECORD_BOOL, struct exec_request, tty, 0),
    RECORD_FIELD(5, RECORD_U32, struct exec_request, rows, 0),
    RECORD_FIELD(6, RECORD_U32, struct exec_request, columns, 0),
    RECORD_FIELD(405, RECORD_U32, struct exec_request, cpus, 0),
    RECORD_FIELD(406, RECORD_SIZE, struct exec_request, memory, 0),
    RECORD_FIELD(545, RECORD_U64, struct exec_request, key, 0),
};
const struct record_type exec_request_record =
    RECORD_TYPE(230, "exec request", struct exec_request, exec_fields);

static const struct record_field step_node_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct step_request_node, node, SPEC_NAME_MAX),
    RECORD_FIELD(2, RECORD_U32, struct step_request_node, tasks, 0),
    RECORD_FIELD(3, RECORD_U32, struct step_request_node, gpus, 0),
};
static const struct record_type step_node_record =
    RECORD_TYPE(231, "step node", struct step_request_node, step_node_fields);

static const struct record_field step_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct step_request, key, STEP_KEY_MAX),
    RECORD_FIELD(2, RECORD_BOOL, struct step_request, resume, 0),
    RECORD_FIELD(3, RECORD_STRING, struct step_request, name, STEP_NAME_MAX),
    RECORD_FIELD(4, RECORD_U32, struct step_request, cpus_per_task, 0),
    RECORD_FIELD(5, RECORD_SIZE, struct step_request, memory, 0),
    RECORD_FIELD(6, RECORD_BOOL, struct step_request, exact, 0),
    RECORD_FIELD(7, RECORD_BOOL, struct step_request, overlap, 0),
    RECORD_SUBLIST(8, struct step_request, nodes, JOB_NODES_MAX, &step_node_record),
};
const struct record_type step_request_record =
    RECORD_TYPE(232, "step request", struct step_request, step_fields);

static const struct record_field step_end_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct step_end_request, step, 0),
    RECORD_FIELD(2, RECORD_I32, struct step_end_request, exit_code, 0),
    RECORD_FIELD(3, RECORD_U32, struct step_end_request, signal, 0),
    RECORD_FIELD(4, RECORD_BOOL, struct step_end_request, cancelled, 0),
    RECORD_FIELD(5, RECORD_BOOL, struct step_end_request, out_of_memory, 0),
    RECORD_FIELD(400, RECORD_SIZE, struct step_end_request, max_rss, 0),
    RECORD_FIELD(401, RECORD_U32, struct step_end_request, max_rss_task, 0),
    RECORD_FIELD(402, RECORD_SIZE, struct step_end_request, ave_rss, 0),
    RECORD_FIELD(403, RECORD_U64, struct step_end_request, user_ms, 0),
    RECORD_FIELD(404, RECORD_U64, struct step_end_request, system_ms, 0),
};
const struct record_type step_end_request_record =
    RECORD_TYPE(233, "step end request", struct step_end_request, step_end_fields);

static const struct record_field step_usage_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct step_usage_request, step, 0),
    RECORD_FIELD(400, RECORD_SIZE, struct step_usage_request, max_rss, 0),
    RECORD_FIELD(401, RECORD_U32, struct step_usage_request, max_rss_task, 0),
    RECORD_FIELD(402, RECORD_SIZE, struct step_usage_request, ave_rss, 0),
    RECORD_FIELD(403, RECORD_U64, struct step_usage_request, user_ms, 0),
    RECORD_FIELD(404, RECORD_U64, struct step_usage_request, system_ms, 0),
};
const struct record_type step_usage_request_record =
    RECORD_TYPE(235, "step usage request", struct step_usage_request, step_usage_fields);

static const struct record_field step_signal_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct step_signal_request, step, 0),
    RECORD_FIELD(2, RECORD_STRING, struct step_signal_request, signal, 16),
};
const struct record_type step_signal_request_record =
    RECORD_TYPE(234, "step signal request", struct step_signal_request, step_signal_fields);

static const struct record_field signal_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct signal_request, signal, 16),
    RECORD_FIELD(2, RECORD_STRING, struct signal_request, to, 16),
};
const struct record_type signal_request_record =
    RECORD_TYPE(260, "signal request", struct signal_request, signal_fields);

static const struct record_field requeue_fields[] = {
    RECORD_FIELD(1, RECORD_I64, struct requeue_request, grace_s, 0),
    RECORD_FIELD(2, RECORD_BOOL, struct requeue_request, hold, 0),
};
const struct record_type requeue_request_record =
    RECORD_TYPE(261, "requeue request", struct requeue_request, requeue_fields);

static const struct record_field park_fields[] = {
    RECORD_FIELD(1, RECORD_I64, struct park_request, for_s, 0),
};
const struct record_type park_request_record =
    RECORD_TYPE(266, "park request", struct park_request, park_fields);

static const struct record_field retry_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct retry_request, submit_key, 128),
};
const struct record_type retry_request_record =
    RECORD_TYPE(262, "retry request", struct retry_request, retry_fields);

static const struct record_field acquire_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct acquire_request, pid, 0),
    RECORD_FIELD(2, RECORD_U32, struct acquire_request, num_gpus, 0),
};
const struct record_type acquire_request_record =
    RECORD_TYPE(263, "acquire request", struct acquire_request, acquire_fields);

static const struct record_field login_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct login_request, host, 256),
    RECORD_FIELD(2, RECORD_STRING, struct login_request, browser_user, 256),
};
const struct record_type login_request_record =
    RECORD_TYPE(264, "login request", struct login_request, login_fields);

static const struct record_field session_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct session_request, login, 128),
};
const struct record_type session_request_record =
    RECORD_TYPE(265, "session request", struct session_request, session_fields);

static const struct record_field node_token_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct node_token_request, expires_s, 0),
    RECORD_FIELD(2, RECORD_STRING, struct node_token_request, host, 256),
    RECORD_FIELD(3, RECORD_STRING, struct node_token_request, node, 64),
    RECORD_FIELD(4, RECORD_BOOL, struct node_token_request, replace, 0),
};
const struct record_type node_token_request_record =
    RECORD_TYPE(240, "node token request", struct node_token_request, node_token_fields);

static const struct record_field release_attempt_fields[] = {
    RECORD_FIELD(1, RECORD_BOOL, struct forget_request, force, 0),
};
const struct record_type forget_request_record =
    RECORD_TYPE(241, "forget request", struct forget_request, release_attempt_fields);
