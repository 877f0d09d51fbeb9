/* SPDX-License-Identifier: MIT */
/* One function for each kind of value and one row for each setting. */
#include "controller/config/settings_sched.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/groups.h"
#include "wire/usernames.h"

#define JOBS_MAX      1000000
#define GPUS_MAX      1000000.0
#define GPU_HOURS_MAX 1e9
#define SHARES_MAX    1e6

static struct controller_options *options_of(void *target)
{
    return *(struct controller_options **)target;
}

static int set_policy(void *target, const char *value, struct error *err)
{
    const struct policy *policy = policy_find(value);
    if (policy == NULL || policy->is_oracle) {
        struct buffer known = { 0 };
        for (size_t i = 0; policies[i] != NULL; i++)
            if (!policies[i]->is_oracle)
                buffer_printf(&known, "%s%s", known.length > 0 ? ", " : "", policies[i]->name);
        (void)error_set(err, -EINVAL,
            policy == NULL ? "--policy: unknown policy '%.40s'"
                           : "--policy: '%.40s' needs perfect knowledge and is for the simulator only",
            value);
        (void)error_hint(err, "one of %.200s", buffer_text(&known));
        buffer_clear(&known);
        return -EINVAL;
    }
    options_of(target)->sched.policy = policy;
    return 0;
}

static int set_placement(void *target, const char *value, struct error *err)
{
    const struct placement *placement = placement_find(value);
    if (placement == NULL) {
        struct buffer known = { 0 };
        for (size_t i = 0; placements[i] != NULL; i++)
            buffer_printf(&known, "%s%s", i > 0 ? ", " : "", placements[i]->name);
        (void)error_set(err, -EINVAL, "--placement: unknown placement '%.40s'", value);
        (void)error_hint(err, "one of %.200s", buffer_text(&known));
        buffer_clear(&known);
        return -EINVAL;
    }
    options_of(target)->sched.placement = placement;
    return 0;
}

static int set_priorities(void *target, const char *value, struct error *err)
{
    bool is_all = strcmp(value, "all") == 0;
    if (!is_all && strcmp(value, "own") != 0) {
        (void)error_set(err, -EINVAL, "--priorities: invalid value '%.40s'", value);
        return error_hint(err, "own: they order the jobs of the requesting user; all: the jobs of all users");
    }
    options_of(target)->are_priorities_of_all = is_all;
    return 0;
}

/* --- limits --- */

static int set_limit_jobs(
    struct account_limits *limits, const char *what, const char *value, struct error *err)
{
    int64_t jobs = 0;
    int r = parse_integer(value, what, 0, JOBS_MAX, &jobs, err);
    if (r == 0)
        limits->jobs = (uint32_t)jobs;
    return r;
}

static int set_limit_gpus(
    struct account_limits *limits, const char *what, const char *value, struct error *err)
{
    double gpus = 0;
    int r = parse_number(value, what, GPUS_MAX, &gpus, err);
    if (r == 0)
        limits->gpu_milli = (uint32_t)(gpus * 1000 + 0.5);
    return r;
}

static int set_limit_hours(
    struct account_limits *limits, const char *what, const char *value, struct error *err)
{
    double hours = 0;
    int r = parse_number(value, what, GPU_HOURS_MAX, &hours, err);
    if (r == 0)
        limits->gpu_seconds = hours * 3600;
    return r;
}

static int option_set_limit_gpus(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    return set_limit_gpus(option_member(target, row), option_name_of(row).text, value, err);
}

static int option_set_limit_hours(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    return set_limit_hours(option_member(target, row), option_name_of(row).text, value, err);
}

const struct option_row sched_rows[] = {
    { 0, "policy", "NAME", "order of the queue: default, fifo, las, ...", set_policy, "default" },
    { 0, "placement", "NAME", "choice of GPUs: fgd, best-fit, first-fit, ...", set_placement, "fgd" },
    { 0, "reservations", "N", "number of blocked jobs at the head that later ones cannot delay",
        OPTION_INNER(count, struct controller_options, sched.reservations), OPTION_RANGE(0, 1000),
        .preset = "1" },
    { 0, "half-life", "TIME", "time after which usage counts half",
        OPTION_INNER(expiry, struct controller_options, sched.half_life_ms), .preset = "7d" },
    { 0, "age-cap", "TIME", "a job is not overtaken by jobs submitted that much later; 0: no bound",
        OPTION_INNER(expiry, struct controller_options, sched.age_cap_ms), .preset = "60d" },
    { 0, "node-jobs", "N", "maximum running jobs per node (0: unlimited)",
        OPTION_INNER(count, struct controller_options, sched.node_jobs), OPTION_RANGE(0, 100000),
        .preset = "0" },
    { 0, "node-starts", "N", "jobs without GPUs that a node starts at a time (0: unlimited)",
        OPTION_INNER(count, struct controller_options, sched.node_starts), OPTION_RANGE(0, 100000),
        .preset = "256" },
    { 0, "user-max-jobs", "N", "maximum running jobs per user (0: unlimited)",
        OPTION_INNER(count, struct controller_options, sched.user_limits.jobs), OPTION_RANGE(0, JOBS_MAX),
        .preset = "0" },
    { 0, "user-max-gpus", "N", "maximum GPUs per user at a time (0: unlimited)",
        OPTION_INNER(limit_gpus, struct controller_options, sched.user_limits), .preset = "0" },
    { 0, "user-max-gpu-hours", "N", "maximum GPU-hours per user, decaying over time (0: unlimited)",
        OPTION_INNER(limit_hours, struct controller_options, sched.user_limits), .preset = "0" },
    { 0, "group-max-jobs", "N", "maximum running jobs per group (0: unlimited)",
        OPTION_INNER(count, struct controller_options, sched.group_limits.jobs), OPTION_RANGE(0, JOBS_MAX),
        .preset = "0" },
    { 0, "group-max-gpus", "N", "maximum GPUs per group at a time (0: unlimited)",
        OPTION_INNER(limit_gpus, struct controller_options, sched.group_limits), .preset = "0" },
    { 0, "group-max-gpu-hours", "N", "maximum GPU-hours per group, decaying over time (0: unlimited)",
        OPTION_INNER(limit_hours, struct controller_options, sched.group_limits), .preset = "0" },
    { 0, "priority-group", "NAME", "group whose priorities above 0 count before the jobs of all users",
        OPTION_INNER(copy, struct controller_options, priority_group) },
    { 0, "priorities", "own|all", "whose jobs a user's priority above 0 orders: its own, or all users'",
        set_priorities, "own" },
    { 0, NULL, NULL, NULL, NULL },
};

/* --- single users and groups --- */

static int find_id(bool is_group, const char *name, uint32_t *ret, struct error *err)
{
    if (is_group)
        return group_find(name, ret, err);
    struct usernames *names = usernames_new();
    int r = usernames_uid(names, name, ret, err);
    usernames_free(names);
    return r;
}

/* A new entry has the default limits as they are then, so these settings must come first. */
static struct core_account *account_of(
    struct controller_options *options, enum account_kind kind, uint32_t id)
{
    for (size_t i = 0; i < options->n_accounts; i++)
        if (options->accounts[i].kind == kind && options->accounts[i].id == id)
            return &options->accounts[i];
    options->accounts = xreallocarray(options->accounts, options->n_accounts + 1, sizeof(*options->accounts));
    struct core_account *account = &options->accounts[options->n_accounts++];
    *account = (struct core_account){
        .kind = kind,
        .id = id,
        .limits = kind == ACCOUNT_GROUP  ? options->sched.group_limits
                  : kind == ACCOUNT_USER ? options->sched.user_limits
                                         : (struct account_limits){ 0 },
    };
    return account;
}

/* The department with this name; it gets a number when it is first mentioned. */
static int find_department(
    struct controller_options *options, const char *name, uint32_t *ret, struct error *err)
{
    uint32_t count = 0;
    if (name[0] == '\0' || strlen(name) >= DEPARTMENT_NAME_MAX)
        return error_set(err, -EINVAL, "the name of a department has 1 to %u characters, not '%.80s'",
            DEPARTMENT_NAME_MAX - 1, name);
    for (size_t i = 0; i < options->n_accounts; i++) {
        const struct core_account *account = &options->accounts[i];
        count += account->kind == ACCOUNT_DEPARTMENT;
        *ret = account->id;
        if (account->kind == ACCOUNT_DEPARTMENT && strcmp(account->name, name) == 0)
            return 0;
    }
    *ret = count + 1;
    struct core_account *department = account_of(options, ACCOUNT_DEPARTMENT, *ret);
    memcpy(department->name, name, strlen(name) + 1);
    return 0;
}

static int set_shares(struct core_account *account, const char *value, struct error *err)
{
    double shares = 0;
    int r = parse_number(value, "shares", SHARES_MAX, &shares, err);
    if (r == 0 && shares == 0)
        r = error_set(err, -EINVAL, "shares must be more than 0");
    if (r == 0)
        account->shares = shares;
    return r;
}

static int set_department(struct controller_options *options, const char *name, const char *key,
    const char *value, struct error *err)
{
    uint32_t number = 0;
    int r = find_department(options, name, &number, err);
    if (r < 0)
        return r;
    if (strcmp(key, "shares") == 0)
        return set_shares(account_of(options, ACCOUNT_DEPARTMENT, number), value, err);
    (void)error_set(err, -EINVAL, "unknown key '%.60s' of a department", key);
    return error_hint(err, "shares");
}

/* Departments may move the accounts in memory. */
static int join_department(
    struct controller_options *options, uint32_t gid, const char *value, struct error *err)
{
    uint32_t number = 0;
    int r = find_department(options, value, &number, err);
    if (r == 0)
        account_of(options, ACCOUNT_GROUP, gid)->department = number;
    return r;
}

int settings_set_account(struct controller_options *options, enum account_kind kind, const char *name,
    const char *key, const char *value, struct error *err)
{
    static const struct {
        const char *name;
        int (*set)(struct account_limits *limits, const char *what, const char *value, struct error *err);
    } keys[] = {
        { "max-jobs", set_limit_jobs },
        { "max-gpus", set_limit_gpus },
        { "max-gpu-hours", set_limit_hours },
    };
    uint32_t id = 0;
    bool is_group = kind == ACCOUNT_GROUP;
    int r = kind != ACCOUNT_DEPARTMENT ? find_id(is_group, name, &id, err) : 0;
    if (r < 0 || kind == ACCOUNT_DEPARTMENT)
        return r < 0 ? r : set_department(options, name, key, value, err);
    if (is_group && strcmp(key, "department") == 0)
        return join_department(options, id, value, err);
    struct core_account *account = account_of(options, kind, id);
    if (strcmp(key, "shares") == 0)
        return set_shares(account, value, err);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i].name, key) == 0)
            return keys[i].set(&account->limits, key, value, err);
    (void)error_set(err, -EINVAL, "unknown key '%.60s' of a %s", key, is_group ? "group" : "user");
    _cleanup_buffer_ struct buffer names = { 0 };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        buffer_printf(&names, "%s%s", i > 0 ? ", " : "", keys[i].name);
    return error_hint(err, "%s%s", buffer_text(&names), is_group ? ", shares or department" : " or shares");
}
