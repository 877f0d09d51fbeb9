/* SPDX-License-Identifier: MIT */
#include "job/launch.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "job/event.h"
#include "job/image.h"
#include "job/park.h"
#include "job/spec.h"

static const struct record_field group_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct group_id, gid, 0),
};
const struct record_type group_id_record = RECORD_TYPE(10, "group", struct group_id, group_fields);

static const struct record_field device_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct device_rule, major, 0),
    RECORD_FIELD(2, RECORD_U32, struct device_rule, minor_first, 0),
    RECORD_FIELD(3, RECORD_U32, struct device_rule, minor_last, 0),
    RECORD_FIELD(4, RECORD_U32, struct device_rule, is_allowed, 0),
};
const struct record_type device_rule_record =
    RECORD_TYPE(14, "device rule", struct device_rule, device_fields);

static const struct record_field image_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct launch_image, name, IMAGE_NAME_MAX),
    RECORD_FIELD(2, RECORD_STRING, struct launch_image, runtime, SPEC_NAME_MAX),
    RECORD_FIELD(3, RECORD_STRINGS, struct launch_image, mounts, IMAGE_MOUNTS_MAX + SPEC_PATH_MAX),
    RECORD_FIELD(4, RECORD_STRINGS, struct launch_image, devices, IMAGE_MOUNTS_MAX),
    RECORD_FIELD(5, RECORD_STRINGS, struct launch_image, gpus, IMAGE_MOUNTS_MAX),
    RECORD_FIELD(6, RECORD_STRING, struct launch_image, visible, SPEC_PATH_MAX),
    RECORD_FIELD(7, RECORD_U32, struct launch_image, vendor, 0), // 8 was of one vendor
};
const struct record_type launch_image_record =
    RECORD_TYPE(15, "launch image", struct launch_image, image_fields);

static const struct record_field limit_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct launch_limit, resource, 0),
    RECORD_FIELD(2, RECORD_U64, struct launch_limit, soft, 0),
    RECORD_FIELD(3, RECORD_U64, struct launch_limit, hard, 0),
};
static const struct record_type limit_record = RECORD_TYPE(343, "limit", struct launch_limit, limit_fields);

static const struct record_field spec_fields[] = {
    ATTEMPT_FIELDS(struct launch_spec),
    RECORD_FIELD(6, RECORD_U32, struct launch_spec, uid, 0),
    RECORD_FIELD(7, RECORD_U32, struct launch_spec, gid, 0),
    RECORD_SUBLIST(8, struct launch_spec, groups, LAUNCH_GROUPS_MAX, &group_id_record),
    RECORD_FIELD(9, RECORD_U32, struct launch_spec, umask, 0),
    RECORD_FIELD(10, RECORD_STRINGS, struct launch_spec, command, SPEC_COMMAND_MAX),
    RECORD_FIELD(11, RECORD_ENV, struct launch_spec, env, SPEC_ENV_MAX + 65536U),
    RECORD_FIELD(12, RECORD_ENV, struct launch_spec, gpu_env, 65536U),
    RECORD_FIELD(13, RECORD_STRING, struct launch_spec, cwd, SPEC_PATH_MAX),
    RECORD_FIELD(14, RECORD_STRING, struct launch_spec, setup, SPEC_SETUP_MAX),
    RECORD_FIELD(15, RECORD_STRING, struct launch_spec, shell, SPEC_PATH_MAX),
    RECORD_FIELD(16, RECORD_STRING, struct launch_spec, output, SPEC_PATH_MAX),
    RECORD_FIELD(17, RECORD_BOOL, struct launch_spec, is_output_default, 0),
    RECORD_FIELD(18, RECORD_STRING, struct launch_spec, output_fallback, SPEC_PATH_MAX),
    RECORD_FIELD(19, RECORD_STRING, struct launch_spec, job_cgroup, SPEC_PATH_MAX),
    RECORD_FIELD(20, RECORD_U64, struct launch_spec, nofile_soft, 0),
    RECORD_FIELD(21, RECORD_U64, struct launch_spec, nofile_hard, 0),
    RECORD_FIELD(22, RECORD_STRING, struct launch_spec, exit_copy_dir, SPEC_PATH_MAX),
    RECORD_FIELD(23, RECORD_STRINGS, struct launch_spec, v1_cgroups, 4 * SPEC_PATH_MAX),
    RECORD_FIELD(24, RECORD_STRING, struct launch_spec, memory_cgroup, SPEC_PATH_MAX),
    RECORD_FIELD(25, RECORD_SIZE, struct launch_spec, memory_limit, 0),
    RECORD_FIELD(26, RECORD_U32, struct launch_spec, cpu_milli, 0),
    RECORD_FIELD(27, RECORD_U32, struct launch_spec, pids_max, 0),
    RECORD_FIELD(464, RECORD_U64, struct launch_spec, numas, 0),
    RECORD_SUBLIST(28, struct launch_spec, devices, LAUNCH_DEVICES_MAX, &device_rule_record),
    RECORD_FIELD(50, RECORD_BOOL, struct launch_spec, is_tty, 0),
    RECORD_FIELD(51, RECORD_U32, struct launch_spec, tty_rows, 0),
    RECORD_FIELD(52, RECORD_U32, struct launch_spec, tty_columns, 0),
    RECORD_FIELD(53, RECORD_BOOL, struct launch_spec, is_exec_step, 0),
    RECORD_FIELD(545, RECORD_U64, struct launch_spec, exec_key, 0),
    RECORD_FIELD(60, RECORD_DURATION, struct launch_spec, time_limit_ms, 0),
    RECORD_FIELD(61, RECORD_DURATION, struct launch_spec, grace_ms, 0),
    RECORD_FIELD(62, RECORD_U32, struct launch_spec, warn_signal, 0),
    RECORD_FIELD(63, RECORD_DURATION, struct launch_spec, warn_before_ms, 0),
    RECORD_SUBLIST(71, struct launch_spec, image, 1, &launch_image_record),
    RECORD_SUBLIST(93, struct launch_spec, ask, 1, &job_ask_record),
    RECORD_FIELD(70, RECORD_STRING, struct launch_spec, script, SPEC_PATH_MAX),
    RECORD_FIELD(83, RECORD_U32, struct launch_spec, checkpoint_signal, 0),
    RECORD_FIELD(84, RECORD_BOOL, struct launch_spec, is_requeued_at_limit, 0),
    RECORD_FIELD(85, RECORD_STRING, struct launch_spec, say_pipe, SPEC_PATH_MAX),
    RECORD_FIELD(80, RECORD_BOOL, struct launch_spec, is_gated, 0),
    RECORD_FIELD(87, RECORD_DURATION, struct launch_spec, lease_ms, 0),
    RECORD_FIELD(88, RECORD_I64, struct launch_spec, lease_until_ms, 0),
    RECORD_FIELD(90, RECORD_STRING, struct launch_spec, cwd_fallback, SPEC_PATH_MAX),
    RECORD_FIELD(91, RECORD_U32, struct launch_spec, meeting_port, 0),
    RECORD_FIELD(92, RECORD_DURATION, struct launch_spec, start_ms, 0),
    RECORD_FIELD(550, RECORD_DURATION, struct launch_spec, files_ms, 0),
    RECORD_FIELD(94, RECORD_STRING, struct launch_spec, error, SPEC_PATH_MAX),
    RECORD_FIELD(95, RECORD_STRING, struct launch_spec, input, SPEC_PATH_MAX),
    RECORD_FIELD(96, RECORD_BOOL, struct launch_spec, is_truncated, 0),
    RECORD_FIELD(99, RECORD_BOOL, struct launch_spec, is_input_sent, 0),
    RECORD_SUBLIST(370, struct launch_spec, limits, LAUNCH_LIMITS_MAX, &limit_record),
    RECORD_FIELD(97, RECORD_U32, struct launch_spec, warn_scope, 0),
    RECORD_FIELD(98, RECORD_BOOL, struct launch_spec, has_no_new_privs, 0),
    RECORD_FIELD(330, RECORD_STRING, struct launch_spec, share, USAGE_SHARE_MAX),
    RECORD_FIELD(331, RECORD_STRING, struct launch_spec, share_why, USAGE_SHARE_MAX),
    RECORD_FIELD(332, RECORD_STRING, struct launch_spec, notices, SPEC_PATH_MAX),
    RECORD_FIELD(333, RECORD_STRING, struct launch_spec, mps, SPEC_NAME_MAX),
    RECORD_FIELD(334, RECORD_STRINGS, struct launch_spec, dmem, 65536U),
    RECORD_SUBLIST(40, struct launch_spec, gpus, EVENT_GPUS_MAX, &gpu_grant_record),
    RECORD_FIELD(360, RECORD_BOOL, struct launch_spec, is_prepared, 0),
    RECORD_FIELD(361, RECORD_BOOL, struct launch_spec, is_early, 0),
};
const struct record_type launch_spec_record = RECORD_TYPE(11, "launch spec", struct launch_spec, spec_fields);

const struct record_field launch_started_fields[LAUNCH_STARTED_FIELDS] = {
    ATTEMPT_FIELDS(struct launch_started),
    RECORD_FIELD(6, RECORD_U32, struct launch_started, shepherd_pid, 0),
    RECORD_FIELD(7, RECORD_U64, struct launch_started, shepherd_start, 0),
    RECORD_FIELD(8, RECORD_U32, struct launch_started, init_pid, 0),
    RECORD_FIELD(9, RECORD_U64, struct launch_started, init_start, 0),
    RECORD_FIELD(10, RECORD_STRING, struct launch_started, log_path, SPEC_PATH_MAX),
    RECORD_FIELD(11, RECORD_I64, struct launch_started, wall_ms, 0),
    RECORD_FIELD(213, RECORD_I64, struct launch_started, boot_ms, 0),
    RECORD_FIELD(92, RECORD_U32, struct launch_started, port, 0),
    RECORD_FIELD(93, RECORD_STRING, struct launch_started, text, EVENT_TEXT_MAX),
};
const struct record_type launch_started_record =
    RECORD_TYPE(12, "started", struct launch_started, launch_started_fields);

const struct record_field launch_exit_fields[LAUNCH_EXIT_FIELDS] = {
    ATTEMPT_FIELDS(struct launch_exit),
    RECORD_FIELD(6, RECORD_U32, struct launch_exit, end, 0),
    RECORD_FIELD(7, RECORD_I32, struct launch_exit, exit_code, 0),
    RECORD_FIELD(8, RECORD_U32, struct launch_exit, signal, 0),
    RECORD_FIELD(9, RECORD_U32, struct launch_exit, is_executed, 0),
    RECORD_FIELD(10, RECORD_I64, struct launch_exit, started_wall_ms, 0),
    RECORD_FIELD(11, RECORD_I64, struct launch_exit, ended_wall_ms, 0),
    RECORD_FIELD(12, RECORD_I64, struct launch_exit, run_ms, 0),
    RECORD_FIELD(13, RECORD_U64, struct launch_exit, cpu_ms, 0),
    RECORD_FIELD(14, RECORD_U64, struct launch_exit, max_rss, 0),
    RECORD_FIELD(15, RECORD_U64, struct launch_exit, log_bytes, 0),
    RECORD_FIELD(16, RECORD_STRING, struct launch_exit, log_path, SPEC_PATH_MAX),
    RECORD_FIELD(17, RECORD_STRING, struct launch_exit, text, EVENT_TEXT_MAX),
    RECORD_FIELD(18, RECORD_STRING, struct launch_exit, tail, USAGE_TAIL_MAX),
    RECORD_SUBLIST(19, struct launch_exit, usage, 1, &job_usage_record),
    RECORD_FIELD(382, RECORD_U32, struct launch_exit, is_refused, 0),
    RECORD_FIELD(543, RECORD_I64, struct launch_exit, ended_boot_ms, 0),
    RECORD_FIELD(544, RECORD_I64, struct launch_exit, ended_ago_ms, 0),
    RECORD_FIELD(551, RECORD_U32, struct launch_exit, cause, 0),
    RECORD_FIELD(560, RECORD_STRING, struct launch_exit, signals, EVENT_TEXT_MAX),
};
const struct record_type launch_exit_record = RECORD_TYPE(13, "exit", struct launch_exit, launch_exit_fields);

static const char *const scope_names[SIGNAL_SCOPES] = {
    [SIGNAL_HANDLERS] = "handlers",
    [SIGNAL_OTHERS] = "steps",
    [SIGNAL_COMMAND] = "script",
    [SIGNAL_ALL] = "all",
};

const char *signal_scope_name(uint32_t scope)
{
    return scope_names[scope < SIGNAL_SCOPES ? scope : SIGNAL_HANDLERS];
}

bool signal_scope_find(const char *name, uint32_t *ret)
{
    for (uint32_t scope = 0; scope < SIGNAL_SCOPES; scope++)
        if (strcmp(name, scope_names[scope]) == 0) {
            *ret = scope;
            return true;
        }
    return false;
}

int64_t launch_started_boot_ms(const struct launch_started *started, int64_t boot_ms, int64_t wall_ms)
{
    if (started->boot_ms != 0)
        return started->boot_ms;
    return wall_ms > started->wall_ms ? boot_ms - (wall_ms - started->wall_ms) : boot_ms;
}

int64_t launch_exit_ago_ms(const struct launch_exit *record, int64_t boot_ms)
{
    if (record->ended_boot_ms <= 0 || record->ended_boot_ms > boot_ms)
        return 0;
    return boot_ms > record->ended_boot_ms ? boot_ms - record->ended_boot_ms : 1;
}

const struct job_ask *launch_ask(const struct launch_spec *spec)
{
    static const struct job_ask nothing = { 0 };
    return spec->ask.count > 0 ? spec->ask.items : &nothing;
}

bool launch_has_error_log(const struct launch_spec *spec)
{
    return launch_ask(spec)->split_log && spec->is_output_default && !spec->is_tty && !spec->is_exec_step;
}

char *launch_error_log(const char *log_path)
{
    return xasprintf("%s.err", log_path);
}

void launch_set_port(struct strings *variables, uint32_t port)
{
    static const char *const names[] = { "MASTER_PORT", "PET_MASTER_PORT" };
    char text[12];
    (void)snprintf(text, sizeof(text), "%u", port);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strings_get_env(variables, names[i]) != NULL)
            strings_set_env(variables, names[i], text);
}

static const struct record_field saved_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct launch_saved, pid, 0),
    RECORD_FIELD(2, RECORD_U64, struct launch_saved, start, 0),
};
static const struct record_type saved_record =
    RECORD_TYPE(341, "saved process", struct launch_saved, saved_fields);

#define LAUNCH_SAVED_MAX 65536U
#define LAUNCH_HOME_MAX  65536U // bytes of the UUIDs of all GPUs of a node

static const struct record_field park_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct launch_park, number, 0),
    RECORD_FIELD(2, RECORD_U32, struct launch_park, is_return, 0),
    RECORD_FIELD(3, RECORD_U32, struct launch_park, outcome, 0),
    RECORD_FIELD(4, RECORD_SIZE, struct launch_park, bytes, 0),
    RECORD_FIELD(5, RECORD_STRING, struct launch_park, text, EVENT_TEXT_MAX),
    RECORD_SUBLIST(6, struct launch_park, saved, LAUNCH_SAVED_MAX, &saved_record),
    RECORD_FIELD(7, RECORD_STRINGS, struct launch_park, home, LAUNCH_HOME_MAX),
    RECORD_FIELD(8, RECORD_BOOL, struct launch_park, is_early, 0),
    RECORD_FIELD(9, RECORD_I64, struct launch_park, granted_ms, 0),
};
const struct record_type launch_park_record =
    RECORD_TYPE(342, "parked attempt", struct launch_park, park_fields);

bool launch_is_parked(const struct launch_park *park)
{
    bool is_saved = park->is_return == 0 && park->outcome == PARK_DONE;
    return is_saved || (park->is_return != 0 && park->outcome == PARK_REFUSED);
}

bool launch_is_back(const struct launch_park *park)
{
    uint32_t outcome = park->is_return != 0 ? PARK_DONE : PARK_REFUSED;
    return park->outcome == outcome;
}
