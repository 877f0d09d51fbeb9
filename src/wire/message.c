/* SPDX-License-Identifier: MIT */
/* The table of messages. A new message is a struct and an id in message.h, a field table here and a row in
 * `types`. */
#include "wire/message.h"

/* A list that is omitted if the frame would be too long (RECORD_SUBLIST, is_spare). */
#define SPARE_SUBLIST(tag_, type_, member_, limit_, sub_)                                                    \
    {                                                                                                        \
        .tag = (tag_), .kind = RECORD_LIST, .name = #member_, .offset = offsetof(type_, member_),            \
        .limit = (limit_), .sub = (sub_), .is_spare = true                                                   \
    }

#define SPARE_PACK(tag_, type_, member_, sub_)                                                               \
    {                                                                                                        \
        .tag = (tag_), .kind = RECORD_PACKED, .name = #member_, .offset = offsetof(type_, member_),          \
        .sub = (sub_), .is_spare = true                                                                      \
    }

static const struct record_field process_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct gpu_process, pid, 0),
    RECORD_FIELD(2, RECORD_U64, struct gpu_process, start, 0),
    RECORD_FIELD(3, RECORD_U32, struct gpu_process, kind, 0),
    RECORD_FIELD(4, RECORD_U32, struct gpu_process, is_memory_known, 0),
    RECORD_FIELD(5, RECORD_SIZE, struct gpu_process, memory_bytes, 0),
    RECORD_FIELD(6, RECORD_U32, struct gpu_process, uid, 0),
    RECORD_FIELD(7, RECORD_U64, struct gpu_process, job, 0),
    RECORD_FIELD(8, RECORD_U32, struct gpu_process, attempt, 0),
    RECORD_FIELD(9, RECORD_STRING, struct gpu_process, command, 256),
    RECORD_FIELD(10, RECORD_STRING, struct gpu_process, container, 64),
};
const struct record_type gpu_process_record =
    RECORD_TYPE(53, "GPU process", struct gpu_process, process_fields);

static const struct record_field gpu_test_fields[] = {
    RECORD_FIELD(1, RECORD_TIME, struct gpu_test, wall_ms, 0),
    RECORD_FIELD(2, RECORD_U64, struct gpu_test, to_mb_s, 0),
    RECORD_FIELD(3, RECORD_U64, struct gpu_test, from_mb_s, 0),
    RECORD_FIELD(4, RECORD_U64, struct gpu_test, on_mb_s, 0),
    RECORD_FIELD(5, RECORD_U64, struct gpu_test, product_mflops, 0),
    RECORD_FIELD(6, RECORD_U64, struct gpu_test, wrong, 0),
    RECORD_FIELD(7, RECORD_STRING, struct gpu_test, error, 128),
};
const struct record_type gpu_test_record = RECORD_TYPE(460, "GPU test", struct gpu_test, gpu_test_fields);

static const struct record_field nic_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct node_nic, name, 64),
    RECORD_FIELD(2, RECORD_STRING, struct node_nic, rdma, 64),
    RECORD_FIELD(3, RECORD_I32, struct node_nic, numa, 0),
    RECORD_FIELD(4, RECORD_I32, struct node_nic, pcie_switch, 0),
    RECORD_FIELD(5, RECORD_U32, struct node_nic, speed_mb, 0),
    RECORD_FIELD(6, RECORD_U32, struct node_nic, is_up, 0),
};
const struct record_type node_nic_record = RECORD_TYPE(461, "NIC", struct node_nic, nic_fields);

static const struct record_field gpu_state_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct gpu_state, index, 0),
    RECORD_FIELD(2, RECORD_STRING, struct gpu_state, uuid, 96),
    RECORD_FIELD(3, RECORD_STRING, struct gpu_state, model, 96),
    RECORD_FIELD(4, RECORD_STRING, struct gpu_state, pci, 32),
    RECORD_FIELD(5, RECORD_SIZE, struct gpu_state, memory_bytes, 0),
    RECORD_FIELD(6, RECORD_U32, struct gpu_state, valid, 0),
    RECORD_FIELD(7, RECORD_SIZE, struct gpu_state, memory_used_bytes, 0),
    RECORD_FIELD(8, RECORD_U32, struct gpu_state, utilization_percent, 0),
    RECORD_FIELD(9, RECORD_U32, struct gpu_state, temperature_c, 0),
    RECORD_FIELD(10, RECORD_U32, struct gpu_state, power_mw, 0),
    RECORD_FIELD(11, RECORD_U32, struct gpu_state, is_lost, 0),
    RECORD_FIELD(12, RECORD_I32, struct gpu_state, numa, 0),
    RECORD_FIELD(13, RECORD_I32, struct gpu_state, pcie_switch, 0),
    RECORD_FIELD(14, RECORD_U64, struct gpu_state, links, 0),
    RECORD_FIELD(15, RECORD_U32, struct gpu_state, vendor, 0),
    RECORD_FIELD(16, RECORD_I32, struct gpu_state, minor, 0),
    RECORD_FIELD(17, RECORD_I32, struct gpu_state, render_minor, 0),
    RECORD_FIELD(18, RECORD_U32, struct gpu_state, power_limit_mw, 0),
    RECORD_FIELD(19, RECORD_U64, struct gpu_state, energy_mj, 0),
    RECORD_FIELD(20, RECORD_U32, struct gpu_state, sm_clock_mhz, 0),
    RECORD_FIELD(21, RECORD_U32, struct gpu_state, memory_clock_mhz, 0),
    RECORD_FIELD(22, RECORD_U64, struct gpu_state, ecc_corrected, 0),
    RECORD_FIELD(23, RECORD_U64, struct gpu_state, ecc_uncorrected, 0),
    RECORD_FIELD(24, RECORD_U32, struct gpu_state, xid, 0),
    RECORD_FIELD(25, RECORD_TIME, struct gpu_state, xid_wall_ms, 0),
    RECORD_FIELD(26, RECORD_U32, struct gpu_state, xid_count, 0),
    RECORD_FIELD(27, RECORD_U32, struct gpu_state, is_unclean, 0),
    RECORD_FIELD(28, RECORD_STRING, struct gpu_state, trouble, 256),
    SPARE_SUBLIST(29, struct gpu_state, processes, GPU_PROCESSES_MAX, &gpu_process_record),
    RECORD_SUBLIST(60, struct gpu_state, xids, GPU_XIDS_MAX, &gpu_xid_record),
    RECORD_FIELD(61, RECORD_U64, struct gpu_state, answers, 0),
    RECORD_FIELD(62, RECORD_STRING, struct gpu_state, refusal, 128),
    RECORD_FIELD(63, RECORD_U32, struct gpu_state, is_one_process, 0),
    RECORD_FIELD(64, RECORD_U32, struct gpu_state, recovery, 0),
    RECORD_FIELD(65, RECORD_U32, struct gpu_state, is_host_memory, 0),
    RECORD_FIELD(66, RECORD_U32, struct gpu_state, is_released, 0),
    RECORD_FIELD(440, RECORD_STRING, struct gpu_state, parent, 96),
    RECORD_FIELD(441, RECORD_U32, struct gpu_state, gpu_instance, 0),
    RECORD_FIELD(442, RECORD_U32, struct gpu_state, compute_instance, 0),
    RECORD_FIELD(443, RECORD_U32, struct gpu_state, is_gone, 0),
    RECORD_SUBLIST(460, struct gpu_state, tests, GPU_TESTS_MAX, &gpu_test_record),
};
const struct record_type gpu_state_record = RECORD_TYPE(50, "gpu", struct gpu_state, gpu_state_fields);

static const struct record_field attempt_usage_fields[] = {
    ATTEMPT_FIELD(1, RECORD_U64, struct attempt_usage, job),
    ATTEMPT_FIELD(2, RECORD_U32, struct attempt_usage, attempt),
    RECORD_FIELD(3, RECORD_U64, struct attempt_usage, token, 0),
    RECORD_SUBLIST(4, struct attempt_usage, usage, 1, &job_usage_record),
    RECORD_FIELD(5, RECORD_U32, struct attempt_usage, is_on_terminal, 0),
    ATTEMPT_FIELD(14, RECORD_U32, struct attempt_usage, rank),
};
const struct record_type attempt_usage_record =
    RECORD_TYPE(54, "attempt usage", struct attempt_usage, attempt_usage_fields);

static const struct record_field feature_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct node_feature, name, 64),
    RECORD_FIELD(2, RECORD_U32, struct node_feature, is_on, 0),
    RECORD_FIELD(3, RECORD_STRING, struct node_feature, text, NODE_FEATURE_TEXT_MAX),
    RECORD_FIELD(4, RECORD_STRING, struct node_feature, fix, NODE_FEATURE_TEXT_MAX),
};
static const struct record_type feature_record =
    RECORD_TYPE(51, "feature", struct node_feature, feature_fields);

static const struct record_field known_attempt_fields[] = {
    ATTEMPT_FIELDS(struct known_attempt),
    RECORD_FIELD(6, RECORD_U32, struct known_attempt, phase, 0),
    RECORD_FIELD(7, RECORD_U32, struct known_attempt, terms, 0),
    RECORD_FIELD(8, RECORD_U32, struct known_attempt, park_number, 0),
    RECORD_FIELD(9, RECORD_U32, struct known_attempt, park_seen, 0),
};
static const struct record_type known_attempt_record =
    RECORD_TYPE(52, "known attempt", struct known_attempt, known_attempt_fields);

static const struct record_field hello_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct message_hello, protocol, 0),
    RECORD_FIELD(2, RECORD_STRING, struct message_hello, node, SPEC_NAME_MAX),
    RECORD_FIELD(3, RECORD_STRING, struct message_hello, boot_id, 64),
    RECORD_FIELD(4, RECORD_STRING, struct message_hello, version, 64),
    RECORD_FIELD(5, RECORD_U32, struct message_hello, cpus, 0),
    RECORD_FIELD(6, RECORD_SIZE, struct message_hello, memory_bytes, 0),
    RECORD_FIELD(7, RECORD_STRING, struct message_hello, gpu_backend, 16),
    RECORD_SUBLIST(8, struct message_hello, gpus, NODE_GPUS_MAX, &gpu_state_record),
    RECORD_SUBLIST(9, struct message_hello, features, 64, &feature_record),
    RECORD_SUBLIST(10, struct message_hello, attempts, NODE_ATTEMPTS_MAX, &known_attempt_record),
    RECORD_FIELD(190, RECORD_I64, struct message_hello, sent_ms, 0),
    RECORD_FIELD(210, RECORD_U64, struct message_hello, epoch, 0),
    RECORD_FIELD(211, RECORD_I64, struct message_hello, began_ms, 0),
    RECORD_FIELD(212, RECORD_U64, struct message_hello, event, 0),
    RECORD_SUBLIST(461, struct message_hello, nics, NODE_NICS_MAX, &node_nic_record),
    RECORD_FIELD(462, RECORD_U32, struct message_hello, shares, 0),
    RECORD_FIELD(463, RECORD_U32, struct message_hello, parks_ranks, 0),
    RECORD_FIELD(464, RECORD_STRING, struct message_hello, driver, NODE_DRIVER_MAX),
    RECORD_FIELD(465, RECORD_U32, struct message_hello, takes_back, 0),
};
const struct record_type message_hello_record =
    RECORD_TYPE(MESSAGE_HELLO, "HELLO", struct message_hello, hello_fields);

static const struct record_field welcome_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct message_welcome, epoch, 0),
    RECORD_FIELD(85, RECORD_I64, struct message_welcome, heartbeat_ms, 0),
    RECORD_FIELD(86, RECORD_I64, struct message_welcome, timeout_ms, 0),
    RECORD_FIELD(190, RECORD_I64, struct message_welcome, sent_ms, 0),
    RECORD_FIELD(191, RECORD_U64, struct message_welcome, last_order, 0),
    RECORD_FIELD(211, RECORD_I64, struct message_welcome, began_ms, 0),
    RECORD_FIELD(212, RECORD_U64, struct message_welcome, event, 0),
    RECORD_FIELD(500, RECORD_STRING, struct message_welcome, controllers, CONTROLLERS_MAX),
};
const struct record_type message_welcome_record =
    RECORD_TYPE(MESSAGE_WELCOME, "WELCOME", struct message_welcome, welcome_fields);

static const struct record_field peer_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct launch_peer, name, SPEC_NAME_MAX),
    RECORD_FIELD(2, RECORD_STRING, struct launch_peer, address, 256),
    RECORD_FIELD(3, RECORD_U32, struct launch_peer, gpus, 0),
};
const struct record_type launch_peer_record = RECORD_TYPE(82, "peer", struct launch_peer, peer_fields);

static const struct record_field launch_fields[] = {
    ATTEMPT_FIELDS(struct message_launch),
    RECORD_FIELD(6, RECORD_U32, struct message_launch, uid, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_launch, gid, 0),
    RECORD_SUBLIST(8, struct message_launch, gpus, EVENT_GPUS_MAX, &gpu_grant_record),
    SPARE_PACK(9, struct message_launch, spec, &job_spec_record),
    RECORD_FIELD(10, RECORD_U64, struct message_launch, array_job, 0),
    RECORD_FIELD(11, RECORD_U32, struct message_launch, array_index, 0),
    SPARE_SUBLIST(80, struct message_launch, peers, JOB_NODES_MAX, &launch_peer_record),
    RECORD_FIELD(81, RECORD_U32, struct message_launch, port, 0),
    RECORD_FIELD(85, RECORD_I64, struct message_launch, lease_ms, 0),
    RECORD_FIELD(196, RECORD_STRING, struct message_launch, user, SPEC_PATH_MAX),
    RECORD_FIELD(190, RECORD_U64, struct message_launch, order, 0),
    RECORD_FIELD(212, RECORD_U64, struct message_launch, event, 0),
    RECORD_FIELD(213, RECORD_U32, struct message_launch, is_early, 0),
};
const struct record_type message_launch_record =
    RECORD_TYPE(MESSAGE_LAUNCH, "LAUNCH", struct message_launch, launch_fields);
const struct record_type message_prepare_record =
    RECORD_TYPE(MESSAGE_PREPARE, "PREPARE", struct message_launch, launch_fields);

static const struct record_field ready_fields[] = {
    ATTEMPT_FIELDS(struct message_ready),
    RECORD_FIELD(197, RECORD_U32, struct message_ready, port, 0),
};
const struct record_type message_ready_record =
    RECORD_TYPE(MESSAGE_READY, "READY", struct message_ready, ready_fields);

static const struct record_field go_fields[] = {
    ATTEMPT_FIELDS(struct message_go),
    RECORD_FIELD(197, RECORD_U32, struct message_go, port, 0),
};
const struct record_type message_go_record = RECORD_TYPE(MESSAGE_GO, "GO", struct message_go, go_fields);

static const struct record_field stop_fields[] = {
    ATTEMPT_FIELDS(struct message_stop),
    RECORD_FIELD(6, RECORD_U32, struct message_stop, signal, 0),
    RECORD_FIELD(7, RECORD_I64, struct message_stop, grace_ms, 0),
};
const struct record_type message_stop_record =
    RECORD_TYPE(MESSAGE_STOP, "STOP", struct message_stop, stop_fields);

static const struct record_field signal_fields[] = {
    ATTEMPT_FIELDS(struct message_signal),
    RECORD_FIELD(6, RECORD_U32, struct message_signal, signal, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_signal, scope, 0),
};
const struct record_type message_signal_record =
    RECORD_TYPE(MESSAGE_SIGNAL, "SIGNAL", struct message_signal, signal_fields);

static const struct record_field update_fields[] = {
    ATTEMPT_FIELDS(struct message_update),
    RECORD_FIELD(6, RECORD_I64, struct message_update, time_limit_ms, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_update, is_suspended, 0),
    RECORD_FIELD(190, RECORD_U32, struct message_update, number, 0),
};
const struct record_type message_update_record =
    RECORD_TYPE(MESSAGE_UPDATE, "UPDATE", struct message_update, update_fields);

static const struct record_field park_fields[] = {
    ATTEMPT_FIELDS(struct message_park),
    RECORD_FIELD(6, RECORD_U32, struct message_park, number, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_park, action, 0),
    RECORD_FIELD(8, RECORD_SIZE, struct message_park, bytes_max, 0),
    RECORD_FIELD(9, RECORD_I64, struct message_park, timeout_ms, 0),
    RECORD_SUBLIST(10, struct message_park, gpus, EVENT_GPUS_MAX, &gpu_grant_record),
};
const struct record_type message_park_record =
    RECORD_TYPE(MESSAGE_PARK, "PARK", struct message_park, park_fields);

static const struct record_field park_result_fields[] = {
    ATTEMPT_FIELDS(struct message_park_result),
    RECORD_FIELD(6, RECORD_U32, struct message_park_result, number, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_park_result, outcome, 0),
    RECORD_FIELD(8, RECORD_SIZE, struct message_park_result, bytes, 0),
    RECORD_FIELD(9, RECORD_STRING, struct message_park_result, text, EVENT_TEXT_MAX),
    RECORD_FIELD(10, RECORD_U32, struct message_park_result, action, 0),
    RECORD_FIELD(11, RECORD_I64, struct message_park_result, waited_ms, 0),
};
const struct record_type message_park_result_record =
    RECORD_TYPE(MESSAGE_PARK_RESULT, "PARK_RESULT", struct message_park_result, park_result_fields);

static const struct record_field release_attempt_fields[] = {
    ATTEMPT_FIELDS(struct message_release_attempt),
    RECORD_FIELD(6, RECORD_U64, struct message_release_attempt, event, 0),
};
const struct record_type message_release_attempt_record = RECORD_TYPE(
    MESSAGE_RELEASE_ATTEMPT, "RELEASE_ATTEMPT", struct message_release_attempt, release_attempt_fields);

static const struct record_field returned_fields[] = {
    ATTEMPT_FIELDS(struct message_returned),
    RECORD_FIELD(6, RECORD_STRING, struct message_returned, text, EVENT_TEXT_MAX),
    RECORD_FIELD(552, RECORD_U32, struct message_returned, cause, 0),
};
const struct record_type message_returned_record =
    RECORD_TYPE(MESSAGE_RETURNED, "RETURNED", struct message_returned, returned_fields);

static const struct record_field gpus_fields[] = {
    RECORD_SUBLIST(1, struct message_gpus, gpus, NODE_GPUS_MAX, &gpu_state_record),
    SPARE_SUBLIST(2, struct message_gpus, usages, NODE_ATTEMPTS_MAX, &attempt_usage_record),
    RECORD_FIELD(40, RECORD_STRING, struct message_gpus, gpu_backend, 16),
    RECORD_SUBLIST(41, struct message_gpus, features, 64, &feature_record),
    RECORD_FIELD(464, RECORD_STRING, struct message_gpus, driver, NODE_DRIVER_MAX),
};
const struct record_type message_gpus_record =
    RECORD_TYPE(MESSAGE_GPUS, "GPUS", struct message_gpus, gpus_fields);

static const struct record_field open_log_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct message_open_log, stream, 0),
    RECORD_FIELD(2, RECORD_U32, struct message_open_log, uid, 0),
    RECORD_FIELD(3, RECORD_U32, struct message_open_log, gid, 0),
    RECORD_FIELD(4, RECORD_STRING, struct message_open_log, path, SPEC_PATH_MAX),
    RECORD_FIELD(5, RECORD_U64, struct message_open_log, offset, 0),
    RECORD_FIELD(6, RECORD_U64, struct message_open_log, length, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_open_log, follow, 0),
};
const struct record_type message_open_log_record =
    RECORD_TYPE(MESSAGE_OPEN_LOG, "OPEN_LOG", struct message_open_log, open_log_fields);

static const struct record_field stream_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct message_stream, stream, 0),
    RECORD_FIELD(2, RECORD_I32, struct message_stream, error, 0),
    RECORD_FIELD(3, RECORD_U64, struct message_stream, size, 0),
    RECORD_FIELD(4, RECORD_STRING, struct message_stream, text, EVENT_TEXT_MAX),
};
const struct record_type message_stream_record =
    RECORD_TYPE(MESSAGE_STREAM, "STREAM", struct message_stream, stream_fields);

static const struct record_field inspect_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct message_inspect, question, 0),
    RECORD_FIELD(2, RECORD_U64, struct message_inspect, job, 0),
    RECORD_FIELD(3, RECORD_U32, struct message_inspect, pid, 0),
    RECORD_FIELD(4, RECORD_U64, struct message_inspect, start, 0),
};
const struct record_type message_inspect_record =
    RECORD_TYPE(MESSAGE_INSPECT, "INSPECT", struct message_inspect, inspect_fields);

static const struct record_field process_info_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct message_process_info, question, 0),
    RECORD_FIELD(2, RECORD_U64, struct message_process_info, job, 0),
    RECORD_FIELD(3, RECORD_I32, struct message_process_info, error, 0),
    RECORD_FIELD(4, RECORD_STRING, struct message_process_info, text, EVENT_TEXT_MAX),
    RECORD_FIELD(5, RECORD_STRING, struct message_process_info, hint, EVENT_TEXT_MAX),
    RECORD_FIELD(6, RECORD_U32, struct message_process_info, pid, 0),
    RECORD_FIELD(7, RECORD_U64, struct message_process_info, start, 0),
    RECORD_FIELD(8, RECORD_U32, struct message_process_info, uid, 0),
    RECORD_FIELD(9, RECORD_U32, struct message_process_info, gid, 0),
    RECORD_FIELD(10, RECORD_STRINGS, struct message_process_info, command, PROCESS_WORDS_MAX),
    RECORD_FIELD(11, RECORD_STRING, struct message_process_info, gpu_ids, ASK_TEXT_MAX),
};
const struct record_type message_process_info_record =
    RECORD_TYPE(MESSAGE_PROCESS_INFO, "PROCESS_INFO", struct message_process_info, process_info_fields);

static const struct record_field release_gpus_fields[] = {
    RECORD_FIELD(1, RECORD_STRINGS, struct message_release_gpus, uuids, GPU_UUIDS_MAX),
};
const struct record_type message_release_gpus_record =
    RECORD_TYPE(MESSAGE_RELEASE_GPUS, "RELEASE_GPUS", struct message_release_gpus, release_gpus_fields);

static const struct record_field open_terminal_fields[] = {
    ATTEMPT_FIELDS(struct message_open_terminal),
    RECORD_FIELD(6, RECORD_U64, struct message_open_terminal, stream, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_open_terminal, is_read_only, 0),
    RECORD_FIELD(8, RECORD_U32, struct message_open_terminal, rows, 0),
    RECORD_FIELD(9, RECORD_U32, struct message_open_terminal, columns, 0),
    RECORD_FIELD(10, RECORD_U64, struct message_open_terminal, position, 0),
    RECORD_FIELD(11, RECORD_U32, struct message_open_terminal, is_input, 0),
};
const struct record_type message_open_terminal_record =
    RECORD_TYPE(MESSAGE_OPEN_TERMINAL, "OPEN_TERMINAL", struct message_open_terminal, open_terminal_fields);

static const struct record_field open_step_fields[] = {
    ATTEMPT_FIELDS(struct message_open_step),
    RECORD_FIELD(6, RECORD_U64, struct message_open_step, stream, 0),
    RECORD_FIELD(7, RECORD_STRINGS, struct message_open_step, command, SPEC_COMMAND_MAX),
    RECORD_FIELD(8, RECORD_ENV, struct message_open_step, env, SPEC_ENV_MAX),
    RECORD_FIELD(9, RECORD_STRING, struct message_open_step, cwd, SPEC_PATH_MAX),
    RECORD_FIELD(10, RECORD_BOOL, struct message_open_step, is_tty, 0),
    RECORD_FIELD(11, RECORD_U32, struct message_open_step, rows, 0),
    RECORD_FIELD(12, RECORD_U32, struct message_open_step, columns, 0),
    RECORD_FIELD(405, RECORD_U32, struct message_open_step, cpus, 0),
    RECORD_FIELD(406, RECORD_SIZE, struct message_open_step, memory, 0),
    RECORD_FIELD(545, RECORD_U64, struct message_open_step, key, 0),
};
const struct record_type message_open_step_record =
    RECORD_TYPE(MESSAGE_OPEN_STEP, "OPEN_STEP", struct message_open_step, open_step_fields);

static const struct record_field rejoin_step_fields[] = {
    ATTEMPT_FIELDS(struct message_rejoin_step),
    RECORD_FIELD(6, RECORD_U64, struct message_rejoin_step, stream, 0),
    RECORD_FIELD(545, RECORD_U64, struct message_rejoin_step, key, 0),
    RECORD_FIELD(546, RECORD_U64, struct message_rejoin_step, position, 0),
    RECORD_FIELD(11, RECORD_U32, struct message_rejoin_step, rows, 0),
    RECORD_FIELD(12, RECORD_U32, struct message_rejoin_step, columns, 0),
    RECORD_FIELD(547, RECORD_BOOL, struct message_rejoin_step, is_farewell, 0),
};
const struct record_type message_rejoin_step_record =
    RECORD_TYPE(MESSAGE_REJOIN_STEP, "REJOIN_STEP", struct message_rejoin_step, rejoin_step_fields);

static const struct record_field open_port_fields[] = {
    ATTEMPT_FIELDS(struct message_open_port),
    RECORD_FIELD(6, RECORD_U64, struct message_open_port, stream, 0),
    RECORD_FIELD(7, RECORD_U32, struct message_open_port, port, 0),
    RECORD_FIELD(8, RECORD_STRING, struct message_open_port, path, SOCKET_PATH_MAX),
};
const struct record_type message_open_port_record =
    RECORD_TYPE(MESSAGE_OPEN_PORT, "OPEN_PORT", struct message_open_port, open_port_fields);

static const struct record_field job_client_fields[] = {
    ATTEMPT_FIELDS(struct message_job_client),
};
const struct record_type message_job_client_record =
    RECORD_TYPE(MESSAGE_JOB_CLIENT, "JOB_CLIENT", struct message_job_client, job_client_fields);

static const struct record_field notify_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct message_notify, notification, 0),
    RECORD_FIELD(2, RECORD_U32, struct message_notify, target, 0),
    RECORD_FIELD(3, RECORD_U64, struct message_notify, job, 0),
    RECORD_FIELD(4, RECORD_U32, struct message_notify, uid, 0),
    RECORD_FIELD(5, RECORD_U32, struct message_notify, gid, 0),
    RECORD_FIELD(6, RECORD_U32, struct message_notify, way, 0),
    RECORD_FIELD(196, RECORD_STRING, struct message_notify, user, SPEC_PATH_MAX),
    RECORD_FIELD(7, RECORD_STRING, struct message_notify, to, NOTIFY_TEXT_MAX),
    RECORD_FIELD(8, RECORD_STRING, struct message_notify, subject, NOTIFY_TEXT_MAX),
    RECORD_FIELD(9, RECORD_STRING, struct message_notify, body, NOTIFY_TEXT_MAX),
    RECORD_FIELD(10, RECORD_STRING, struct message_notify, json, NOTIFY_JSON_MAX),
    RECORD_FIELD(11, RECORD_ENV, struct message_notify, env, NOTIFY_TEXT_MAX),
    RECORD_FIELD(12, RECORD_I64, struct message_notify, time_ms, 0),
};
const struct record_type message_notify_record =
    RECORD_TYPE(MESSAGE_NOTIFY, "NOTIFY", struct message_notify, notify_fields);

static const struct record_field notified_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct message_notified, notification, 0),
    RECORD_FIELD(2, RECORD_U32, struct message_notified, target, 0),
    RECORD_FIELD(3, RECORD_I32, struct message_notified, error, 0),
    RECORD_FIELD(4, RECORD_STRING, struct message_notified, text, EVENT_TEXT_MAX),
};
const struct record_type message_notified_record =
    RECORD_TYPE(MESSAGE_NOTIFIED, "NOTIFIED", struct message_notified, notified_fields);
static const struct record_field join_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct message_join, protocol, 0),
    RECORD_FIELD(2, RECORD_STRING, struct message_join, version, 64),
    RECORD_FIELD(3, RECORD_STRING, struct message_join, node, SPEC_NAME_MAX),
    RECORD_FIELD(4, RECORD_U64, struct message_join, token, 0),
    RECORD_FIELD(5, RECORD_STRING, struct message_join, secret, 64),
    RECORD_FIELD(6, RECORD_STRING, struct message_join, request, JOIN_PEM_MAX),
};
const struct record_type message_join_record =
    RECORD_TYPE(MESSAGE_JOIN, "JOIN", struct message_join, join_fields);

static const struct record_field joined_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct message_joined, certificate, JOIN_PEM_MAX),
    RECORD_FIELD(2, RECORD_STRING, struct message_joined, controller, SPEC_NAME_MAX),
};
const struct record_type message_joined_record =
    RECORD_TYPE(MESSAGE_JOINED, "JOINED", struct message_joined, joined_fields);

static const struct record_field refused_fields[] = {
    RECORD_FIELD(1, RECORD_I32, struct message_refused, error, 0),
    RECORD_FIELD(2, RECORD_STRING, struct message_refused, text, EVENT_TEXT_MAX),
    RECORD_FIELD(3, RECORD_STRING, struct message_refused, hint, EVENT_TEXT_MAX),
};
const struct record_type message_refused_record =
    RECORD_TYPE(MESSAGE_REFUSED, "REFUSED", struct message_refused, refused_fields);

static const struct record_field probe_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct message_probe, protocol, 0),
    RECORD_FIELD(2, RECORD_STRING, struct message_probe, version, 64),
    RECORD_FIELD(3, RECORD_U64, struct message_probe, token, 0),
    RECORD_FIELD(4, RECORD_STRING, struct message_probe, secret, 64),
};
const struct record_type message_probe_record =
    RECORD_TYPE(MESSAGE_PROBE, "PROBE", struct message_probe, probe_fields);

static const struct record_field probed_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct message_probed, protocol, 0),
    RECORD_FIELD(2, RECORD_STRING, struct message_probed, version, 64),
    RECORD_FIELD(3, RECORD_I64, struct message_probed, wall_ms, 0),
    RECORD_FIELD(4, RECORD_STRING, struct message_probed, controller, SPEC_NAME_MAX),
};
const struct record_type message_probed_record =
    RECORD_TYPE(MESSAGE_PROBED, "PROBED", struct message_probed, probed_fields);

static const struct record_field heartbeat_fields[] = {
    RECORD_FIELD(1, RECORD_I64, struct message_heartbeat, sent_ms, 0),
    RECORD_FIELD(212, RECORD_U64, struct message_heartbeat, event, 0),
    RECORD_FIELD(500, RECORD_STRING, struct message_heartbeat, controllers, CONTROLLERS_MAX),
};
const struct record_type message_heartbeat_record =
    RECORD_TYPE(MESSAGE_HEARTBEAT, "HEARTBEAT", struct message_heartbeat, heartbeat_fields);
const struct record_type message_heartbeat_ack_record =
    RECORD_TYPE(MESSAGE_HEARTBEAT_ACK, "HEARTBEAT_ACK", struct message_heartbeat, heartbeat_fields);

/* The spool's records, carried under message ids. */
const struct record_type message_started_record =
    RECORD_TYPE(MESSAGE_STARTED, "STARTED", struct launch_started, launch_started_fields);
const struct record_type message_exited_record =
    RECORD_TYPE(MESSAGE_EXITED, "EXITED", struct launch_exit, launch_exit_fields);

static const struct record_type *const types[] = {
    &message_hello_record,
    &message_welcome_record,
    &message_launch_record,
    &message_stop_record,
    &message_release_attempt_record,
    &message_started_record,
    &message_exited_record,
    &message_returned_record,
    &message_gpus_record,
    &message_open_log_record,
    &message_stream_record,
    &message_inspect_record,
    &message_process_info_record,
    &message_open_terminal_record,
    &message_open_step_record,
    &message_rejoin_step_record,
    &message_open_port_record,
    &message_signal_record,
    &message_update_record,
    &message_notify_record,
    &message_notified_record,
    &message_join_record,
    &message_joined_record,
    &message_refused_record,
    &message_probe_record,
    &message_probed_record,
    &message_ready_record,
    &message_go_record,
    &message_heartbeat_record,
    &message_heartbeat_ack_record,
    &message_release_gpus_record,
    &message_park_record,
    &message_park_result_record,
    &message_prepare_record,
    &message_job_client_record,
};

const struct record_type *message_type(uint16_t id)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i]->id == id)
            return types[i];
    return NULL;
}
