/* SPDX-License-Identifier: MIT */
/* The table of settings, the files, and the notes on them. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/parse.h"
#include "controller/config/settings.h"
#include "controller/reload.h"
#include "unit_test.h"

struct place {
    char dir[64], path[96];
    struct controller_options options;
};

static int setup(void **state)
{
    struct place *place = xcalloc(1, sizeof(*place));
    struct error err = { 0 };
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/mgpu-settings.XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    (void)snprintf(place->path, sizeof(place->path), "%s/mgpu.yaml", place->dir);
    assert_int_equal(settings_default(&place->options, true, &err), 0);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;
    settings_clear(&place->options);
    _cleanup_free_ char *command = xasprintf("rm -rf %s", place->dir);
    assert_int_equal(system(command), 0);
    free(place);
    return 0;
}

#define CASE(name, place) TEST_ON(name, struct place *place, setup, teardown)

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static int read_text(struct place *place, const char *text, struct error *err)
{
    write_file(place->path, text);
    return config_read(place->path, &place->options, err);
}

static void assert_refused(struct place *place, const char *text, const char *where, const char *what)
{
    struct error err = { 0 };
    assert_true(read_text(place, text, &err) < 0);
    if (strstr(err.message, where) == NULL ||
        (strstr(err.message, what) == NULL && strstr(err.hint, what) == NULL))
        fail_msg("%s; %s: not '%s' and '%s'", err.message, err.hint, where, what);
}

CASE(every_default_is_a_value_that_its_setting_takes, place)
{
    size_t count = 0;
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
        for (const struct option_row *row = table->rows; row->name != NULL; row++) {
            struct error err = { 0 };
            if (row->preset == NULL)
                continue;
            if (settings_set(&place->options, row->name, row->preset, "here", &err) < 0)
                fail_msg("%s: %s: %s", row->name, row->preset, err.message);
            count++;
        }
    assert_true(count > 20);
}

enum kind {
    TEXT,
    NO_TEXT,
    POLICY,
    PLACEMENT,
    FOREIGN,
    ACCESS,
    BOOLEAN,
    COUNT,
    COUNT_64,
    MS,
    BYTES,
    AUTO_BYTES,
    OWN, // false
    ASKED,
    EARLY,
    PERCENT
};

/* A field that mgpud obeys, of core_options as the core gets them where it is the core that obeys. */
struct in_force {
    const char *key;
    enum kind kind;
    const void *field;
};

#define LIST_MAX 80

static size_t list_fields(
    const struct controller_options *o, const struct core_options *c, struct in_force *ret)
{
    const struct in_force fields[] = {
        { "listen", TEXT, &o->listen },
        { "nodes-listen", TEXT, &o->nodes_listen },
        { "job-access", ACCESS, &o->job_access },
        { "munge", BOOLEAN, &o->is_munge_on },
        { "munge-socket", TEXT, &o->munge_socket },
        { "gpus", TEXT, &o->gpus },
        { "nvml-library", NO_TEXT, &o->nvml_library },
        { "cuda-library", NO_TEXT, &o->cuda_library },
        { "rocm-library", NO_TEXT, &o->rocm_library },
        { "mps-control", NO_TEXT, &o->mps_control },
        { "sysfs-root", TEXT, &o->sysfs_root },
        { "imex-channels", BOOLEAN, &o->is_imex_on },
        { "gpu-scrub", MS, &o->gpu_scrub_ms },
        { "gpu-test-every", MS, &o->gpu_test_every_ms },
        { "sendmail", TEXT, &o->sendmail },
        { "user", TEXT, &o->user },
        { "min-uid", TEXT, &o->min_uid },
        { "pids-max", TEXT, &o->pids_max },
        { "no-agent", BOOLEAN, &o->has_no_agent },
        { "allow-root-jobs", BOOLEAN, &o->allow_root_jobs },
        { "priorities", OWN, &o->are_priorities_of_all },
        { "adopt-any-user", BOOLEAN, &o->adopts_any_user },
        { "no-new-privileges", BOOLEAN, &o->has_no_new_privs },
        { "log-max", COUNT_64, &c->log_max },
        { "private-tmp", BOOLEAN, &o->is_tmp_private },
        { "watch-terminals", BOOLEAN, &o->may_watch_terminals },
        { "verbose", BOOLEAN, &o->is_verbose },
        { "policy", POLICY, &c->sched.policy },
        { "placement", PLACEMENT, &c->sched.placement },
        { "reservations", COUNT, &c->sched.reservations },
        { "half-life", MS, &c->sched.half_life_ms },
        { "age-cap", MS, &c->sched.age_cap_ms },
        { "node-jobs", COUNT, &c->sched.node_jobs },
        { "node-starts", COUNT, &c->sched.node_starts },
        { "user-max-jobs", COUNT, &c->sched.user_limits.jobs },
        { "user-max-gpus", COUNT, &c->sched.user_limits.gpu_milli },
        { "user-max-gpu-hours", COUNT_64, &c->sched.user_limits.gpu_seconds },
        { "group-max-jobs", COUNT, &c->sched.group_limits.jobs },
        { "group-max-gpus", COUNT, &c->sched.group_limits.gpu_milli },
        { "group-max-gpu-hours", COUNT_64, &c->sched.group_limits.gpu_seconds },
        { "foreign", FOREIGN, &c->external.policy },
        { "foreign-memory", BYTES, &c->external.external_memory },
        { "foreign-load", PERCENT, &c->external.external_load },
        { "share-max-memory", PERCENT, &c->external.share_memory },
        { "share-max-load", PERCENT, &c->external.share_load },
        { "gpu-recover", MS, &c->health.recover_ms },
        { "gpu-unclean", MS, &c->health.unclean_ms },
        { "idle-warn", MS, &c->idle.warn_ms },
        { "idle-preemptible", MS, &c->idle.yields_ms },
        { "idle-end", MS, &c->idle.end_ms },
        { "idle-ok", BOOLEAN, &c->idle.is_ok_for_operators },
        { "max-time", MS, &c->max_time_ms },
        { "default-time", MS, &c->default_time_ms },
        { "grace", MS, &c->grace_ms },
        { "start-patience", MS, &c->start_patience_ms },
        { "notices", BOOLEAN, &c->notifications.is_off },
        { "notices-per-hour", COUNT, &c->notifications.per_hour },
        { "notice-time", MS, &c->notifications.time_ms },
        { "keep-jobs", MS, &o->keep_jobs_ms },
        { "keep-max", COUNT_64, &o->keep_max },
        { "user-max-queued", COUNT_64, &o->user_max_queued },
        { "user-max-stored", BYTES, &o->user_max_stored },
        { "node-timeout", MS, &c->loss.timeout_ms },
        { "node-lease", MS, &c->loss.lease_ms },
        { "park", ASKED, &o->sched.parking },
        { "park-after", MS, &o->sched.quantum_ms },
        { "park-cost", AUTO_BYTES, &o->sched.park_cost_ms },
        { "park-max", AUTO_BYTES, &c->park.bytes_max },
        { "park-timeout", MS, &c->park.timeout_ms },
        { "early", EARLY, &c->early.mode },
        { "early-within", MS, &c->early.within_ms },
        { "elements-ahead", MS, &c->early.elements_ms },
        { "cluster", NO_TEXT, &o->cluster.etcd },
        { "cluster-lease", MS, &o->cluster.lease_ms },
    };
    size_t count = sizeof(fields) / sizeof(fields[0]);
    assert_true(count <= LIST_MAX);
    memcpy(ret, fields, sizeof(fields));
    return count;
}

/* True when the field has what the text says; read here in another way than by the setting itself. */
static bool has_value(const struct in_force *field, const char *text)
{
    int64_t ms = 0;
    uint64_t bytes = 0;
    double part = strtod(text, NULL) * (strchr(text, '%') != NULL ? 1 : 100);
    bool is_no = strcmp(text, "none") == 0 || strcmp(text, "never") == 0;
    bool is_first = strcmp(text, "on") != 0 && strcmp(text, "allowed") != 0; // what the field is named for
    switch (field->kind) {
    case TEXT: return strcmp(*(char *const *)field->field, text) == 0;
    case NO_TEXT: return *(char *const *)field->field == NULL && (is_no || strcmp(text, "auto") == 0);
    case POLICY: return *(const struct policy *const *)field->field == policy_find(text);
    case PLACEMENT: return *(const struct placement *const *)field->field == placement_find(text);
    case FOREIGN: return *(const enum external_policy *)field->field == external_policy_find(text);
    case ACCESS:
        return *(const enum job_access *)field->field == JOB_ACCESS_SUBMIT && strcmp(text, "submit") == 0;
    case BOOLEAN: // all of them are false, and these texts say so
        return !*(const bool *)field->field &&
               (!is_first || strcmp(text, "off") == 0 || strcmp(text, "false") == 0);
    case ASKED:
        return *(const enum parking_mode *)field->field == PARKING_ASKED && strcmp(text, "asked") == 0;
    case EARLY: return *(const enum early_mode *)field->field == EARLY_ASKED && strcmp(text, "asked") == 0;
    case OWN: return !*(const bool *)field->field && strcmp(text, "own") == 0;
    case COUNT: return *(const uint32_t *)field->field == strtoul(text, NULL, 10);
    case COUNT_64: // also a double: zero is the same
        return *(const uint64_t *)field->field == strtoull(text, NULL, 10);
    case MS:
        return (is_no || parse_duration(text, "", &ms, NULL) == 0) && *(const int64_t *)field->field == ms;
    case BYTES: return parse_size(text, "", &bytes, NULL) == 0 && *(const uint64_t *)field->field == bytes;
    case AUTO_BYTES: return strcmp(text, "auto") == 0 && *(const uint64_t *)field->field == 0;
    case PERCENT: return *(const uint32_t *)field->field == (uint32_t)(part + 0.5);
    }
    return false;
}

CASE(a_start_without_options_has_every_default_that_is_shown, place)
{
    const struct controller controller = { .options = place->options };
    const struct core_options core = reload_core_options(&controller);
    struct in_force fields[LIST_MAX];
    size_t n_fields = list_fields(&controller.options, &core, fields), count = 0;
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
        for (const struct option_row *row = table->rows; row->name != NULL; row++) {
            size_t i = 0;
            while (i < n_fields && strcmp(fields[i].key, row->name) != 0)
                i++;
            if (row->preset == NULL)
                continue;
            if (i == n_fields)
                fail_msg("%s: which field is it? It belongs into the list above", row->name);
            if (!has_value(&fields[i], row->preset))
                fail_msg("%s: the default that is shown, %s, is not in force", row->name, row->preset);
            count++;
        }
    assert_int_equal(count, n_fields);
    assert_int_equal(core.sched.preempt_grace_ms, core.grace_ms);
}

/* The simulator begins with the same settings as mgpud. */
CASE(the_scheduler_alone_has_the_same_defaults, place)
{
    struct sched_settings alone;
    sched_settings_init(&alone);
    assert_int_equal(alone.node_starts, 0); // journals of versions without it are replayed without it
    alone.node_starts = place->options.sched.node_starts;
    assert_memory_equal(&alone, &place->options.sched, sizeof(alone));
    assert_int_equal(alone.preempt_grace_ms, place->options.grace_ms);
}

CASE(a_default_does_not_count_as_set, place)
{
    assert_int_equal(place->options.n_notes, 0);
}

CASE(a_mistake_is_told_with_its_line, place)
{
    assert_refused(place, "gpus: none\nnode: a\ngpus: none\n", "mgpu.yaml:3", "is already set in line 1");
    assert_refused(place, "halflife: 1d\n", "mgpu.yaml:1", "did you mean half-life?");
    assert_refused(place, "a: b\n---\nc: d\n", "mgpu.yaml:1", "unknown key");
    assert_refused(place, "node: b\n---\nnode: d\n", "mgpu.yaml:3", "more than one document");
    assert_refused(place, "users: 3\n", "mgpu.yaml:1", "must be a mapping");
    assert_refused(place, "users:\n  root: 3\n", "mgpu.yaml:2", "a mapping of limits");
    assert_refused(place, "users:\n  root:\n    max-job: 3\n", "mgpu.yaml:3", "max-jobs");
    assert_refused(place, "roles:\n  boss: root\n", "mgpu.yaml:2", "unknown role 'boss'");
    assert_refused(place, "roles:\n  admin: { a: b }\n", "mgpu.yaml:2", "a list of users and groups");
    assert_refused(place, "roles:\n  others: everybody\n", "mgpu.yaml:2", "viewer, user, operator or admin");
    assert_refused(place, "? [a]\n: b\n", "mgpu.yaml:1", "a key must be a word");
    assert_refused(place, "node: [\n", "mgpu.yaml:", "");
    assert_refused(place, "node: \"\\xZZ\"\n", "mgpu.yaml:1", "");
}

CASE(a_user_or_group_that_is_gone_is_a_warning, place)
{
    const struct strings *warnings = &place->options.warnings;
    struct error err = { 0 };
    assert_int_equal(read_text(place,
                         "users:\n  no such user: { max-jobs: 3, max-gpus: 2 }\n  root: { max-jobs: 2 }\n"
                         "groups:\n  no such group: { max-jobs: 3 }\n"
                         "roles:\n  admin:\n    - group:no such group\n    - daemon\n",
                         &err),
        0);
    assert_int_equal(warnings->count, 3);
    assert_non_null(strstr(warnings->items[0], "mgpu.yaml:2: there is no user 'no such user'"));
    assert_non_null(strstr(warnings->items[1], "mgpu.yaml:5: there is no group 'no such group'"));
    assert_non_null(strstr(warnings->items[2], "mgpu.yaml:8: "));
    assert_null(settings_find_note(&place->options, "users.no such user.max-jobs"));
    assert_int_equal(place->options.n_accounts, 1); // what else the file says holds
    assert_non_null(settings_find_note(&place->options, "roles.daemon"));
}

CASE(anchors_are_followed_and_cannot_blow_up, place)
{
    struct error err = { 0 };
    assert_int_equal(read_text(place,
                         "user-max-gpus: &few 3\ngroup-max-gpus: *few\n"
                         "users:\n  root: &limits { max-jobs: 2 }\n  daemon: *limits\n",
                         &err),
        0);
    assert_string_equal(settings_find_note(&place->options, "group-max-gpus")->value, "3");
    assert_string_equal(settings_find_note(&place->options, "users.daemon.max-jobs")->value, "2");
    assert_refused(place,
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
        "mgpu.yaml:1", "single value");
}

CASE(a_file_too_long_or_no_file_is_refused, place)
{
    struct error err = { 0 };
    char *text = xcalloc(1, (1 << 20) + 16);
    memset(text, '#', (1 << 20) + 8);
    assert_int_equal(read_text(place, text, &err), -EFBIG);
    free(text);
    assert_int_equal(config_read(place->dir, &place->options, &err), -EINVAL);
    assert_int_equal(config_read("/nonexistent/mgpu.yaml", &place->options, &err), -ENOENT);
    _cleanup_free_ char *deep = xcalloc(1, 20001);
    memset(deep, '[', 20000);
    assert_true(read_text(place, deep, &err) < 0);
}

static int read_words(struct place *place, const char *config, const char *option)
{
    char program[] = "mgpud", flag[] = "--config";
    _cleanup_free_ char *file = xstrdup(config), *word = xstrdup(option);
    char *argv[] = { program, flag, file, word, NULL };
    struct settings_actions actions;
    struct error err = { 0 };
    int r = settings_read(4, argv, true, &place->options, &actions, &err);
    if (r < 0)
        print_message("%s\n", err.message);
    return r;
}

CASE(drop_ins_come_in_order_and_the_command_line_last, place)
{
    char path[128];
    write_file(place->path, "node: file\nhalf-life: 1d\nuser-max-jobs: 1\n");
    (void)snprintf(path, sizeof(path), "%s.d", place->path);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s.d/20-b.yaml", place->path);
    write_file(path, "half-life: 3d\n");
    (void)snprintf(path, sizeof(path), "%s.d/10-a.yaml", place->path);
    write_file(path, "half-life: 2d\nuser-max-jobs: 2\n");
    (void)snprintf(path, sizeof(path), "%s.d/30-c.yaml~", place->path);
    write_file(path, "half-life: 4d\n");
    assert_int_equal(read_words(place, place->path, "--node=words"), 0);
    assert_string_equal(place->options.node, "words");
    assert_int_equal(place->options.sched.half_life_ms, INT64_C(3) * 24 * 3600 * 1000);
    assert_int_equal(place->options.sched.user_limits.jobs, 2);
    assert_int_equal(place->options.n_files, 3);
    assert_string_equal(settings_find_note(&place->options, "node")->origin, "command line");
    assert_non_null(strstr(settings_find_note(&place->options, "half-life")->origin, "20-b.yaml:1"));
    assert_non_null(strstr(settings_find_note(&place->options, "user-max-jobs")->origin, "10-a.yaml:2"));
    assert_null(settings_find_note(&place->options, "config"));
}

struct change {
    char text[512];
};

static void note_change(void *arg, const struct setting *setting, const char *before, const char *after)
{
    struct change *change = arg;
    size_t used = strlen(change->text);
    (void)snprintf(change->text + used, sizeof(change->text) - used, "%s%s:%s>%s;", setting->key,
        setting->is_live ? "" : "!", before != NULL ? before : "-", after != NULL ? after : "-");
}

CASE(what_differs_is_told_with_what_needs_a_restart, place)
{
    _cleanup_(settings_clear) struct controller_options after;
    struct change change = { "" };
    struct error err = { 0 };
    assert_int_equal(settings_default(&after, true, &err), 0);
    assert_int_equal(
        read_text(place, "gpus: none\nusers: { root: { max-jobs: 1, max-gpus: 2 } }\n", &err), 0);
    write_file(place->path, "policy: fifo\nusers: { root: { max-jobs: 3 } }\nroles: { viewer: daemon }\n");
    assert_int_equal(config_read(place->path, &after, &err), 0);
    settings_compare(&place->options, &after, note_change, &change);
    assert_string_equal(change.text,
        "gpus!:none>auto;policy:default>fifo;users.root.max-jobs:1>3;roles.daemon:->viewer;"
        "users.root.max-gpus:2>-;");
    change.text[0] = '\0';
    settings_compare(&after, &after, note_change, &change);
    assert_string_equal(change.text, "");
}

/* A value of the row that is not its default, or NULL: `options` then has it. */
static const char *set_other_value(struct controller_options *options, const struct option_row *row)
{
    static const char *const values[] = { "7", "77s", "3G", "fifo", "first-fit", "never", "avoid", "ignore",
        "all", "auto", "kill", "on", "0.7", "root", "http://127.0.0.1:9/x", "77", "root@localhost",
        "operators", "off", "own" };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct error err = { 0 };
        if (row->preset != NULL && strcmp(row->preset, values[i]) == 0)
            continue;
        if (settings_set(options, row->name, row->argument != NULL ? values[i] : NULL, "test", &err) == 0)
            return values[i];
    }
    return NULL;
}

/* Words that are pointers differ between two settings that are equal. */
static void assert_taken_up(const struct option_row *row)
{
    struct controller_options now, same, fresh;
    struct error err = { 0 };
    assert_int_equal(settings_default(&now, true, &err), 0);
    assert_int_equal(settings_default(&same, true, &err), 0);
    assert_int_equal(settings_default(&fresh, true, &err), 0);
    if (set_other_value(&fresh, row) == NULL)
        fail_msg("%s: none of the values of this test is one of it", row->name);
    const struct controller_options before = now, equal = same, wanted = fresh;
    settings_take_up(&now, &fresh);
    uint64_t words[4][offsetof(struct controller_options, notes) / sizeof(uint64_t)];
    memcpy(words[0], &before, sizeof(words[0]));
    memcpy(words[1], &equal, sizeof(words[1]));
    memcpy(words[2], &wanted, sizeof(words[2]));
    memcpy(words[3], &now, sizeof(words[3]));
    size_t changed = 0;
    for (size_t i = 0; i < sizeof(words[0]) / sizeof(uint64_t); i++) {
        if (words[0][i] != words[1][i] || words[0][i] == words[2][i])
            continue;
        changed++;
        if (words[3][i] != words[2][i])
            fail_msg(
                "%s: called live, and not taken up by a reload (byte %zu)", row->name, i * sizeof(uint64_t));
    }
    if (changed == 0)
        fail_msg("%s: the value of this test changes nothing", row->name);
    settings_clear(&now);
    settings_clear(&same);
    settings_clear(&fresh);
}

TEST(a_reload_takes_up_every_setting_that_is_called_live)
{
    size_t count = 0;
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
        for (const struct option_row *row = table->rows; table->is_live && row->name != NULL; row++, count++)
            assert_taken_up(row);
    assert_true(count > 40);
}
