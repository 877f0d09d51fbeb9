/* SPDX-License-Identifier: MIT */
/* The table of settings, the files, and what is noted of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/options.h"
#include "controller/settings.h"

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

static void every_default_is_a_value_that_its_setting_takes(void **state)
{
    struct place *place = *state;
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

/* The text that is shown as the default must be the default. */
static void the_defaults_that_are_told_are_those_in_force(void **state)
{
    struct place *place = *state;
    struct controller_options told;
    struct error err = { 0 };
    assert_int_equal(settings_default(&told, true, &err), 0);
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
        for (const struct option_row *row = table->rows; row->name != NULL; row++)
            if (row->preset != NULL)
                assert_int_equal(settings_set(&told, row->name, row->preset, "here", &err), 0);
    const struct controller_options *real = &place->options;
    assert_memory_equal(&told.sched, &real->sched, sizeof(told.sched));
    assert_memory_equal(&told.outside, &real->outside, sizeof(told.outside));
    assert_string_equal(told.listen, real->listen);
    assert_string_equal(told.gpus, real->gpus);
    assert_string_equal(told.user, real->user);
    assert_int_equal(told.allow_root_jobs, real->allow_root_jobs);
    assert_int_equal(told.is_verbose, real->is_verbose);
    settings_clear(&told);
}

static void a_mistake_is_told_with_its_line(void **state)
{
    struct place *place = *state;
    assert_refused(place, "gpus: none\nnode: a\ngpus: none\n", "mgpu.yaml:3", "stands in line 1 already");
    assert_refused(place, "halflife: 1d\n", "mgpu.yaml:1", "did you mean half-life?");
    assert_refused(place, "a: b\n---\nc: d\n", "mgpu.yaml:1", "unknown key");
    assert_refused(place, "node: b\n---\nnode: d\n", "mgpu.yaml:3", "more than one document");
    assert_refused(place, "users: 3\n", "mgpu.yaml:1", "holds a mapping");
    assert_refused(place, "users:\n  root: 3\n", "mgpu.yaml:2", "a mapping of limits");
    assert_refused(place, "users:\n  root:\n    max-job: 3\n", "mgpu.yaml:3", "max-jobs");
    assert_refused(place, "users:\n  no such user: { max-jobs: 3 }\n", "mgpu.yaml:2", "no such user");
    assert_refused(place, "roles:\n  boss: root\n", "mgpu.yaml:2", "there is no role 'boss'");
    assert_refused(
        place, "roles:\n  admin:\n    - root\n    - group:no such group\n", "mgpu.yaml:4", "no such group");
    assert_refused(place, "roles:\n  admin: { a: b }\n", "mgpu.yaml:2", "a list of users and groups");
    assert_refused(place, "roles:\n  others: everybody\n", "mgpu.yaml:2", "viewer, user, operator or admin");
    assert_refused(place, "? [a]\n: b\n", "mgpu.yaml:1", "a key is a word");
    assert_refused(place, "node: [\n", "mgpu.yaml:", "");
    assert_refused(place, "node: \"\\xZZ\"\n", "mgpu.yaml:1", "");
}

static void anchors_are_followed_and_cannot_blow_up(void **state)
{
    struct place *place = *state;
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

static void a_file_too_long_or_no_file_is_refused(void **state)
{
    struct place *place = *state;
    struct error err = { 0 };
    char *text = xcalloc(1, (1 << 20) + 16);
    memset(text, '#', (1 << 20) + 8);
    assert_int_equal(read_text(place, text, &err), -EFBIG);
    free(text);
    assert_int_equal(config_read(place->dir, &place->options, &err), -EINVAL);
    assert_int_equal(config_read("/nonexistent/mgpu.yaml", &place->options, &err), -ENOENT);
    char *deep = xcalloc(1, 20001);
    memset(deep, '[', 20000);
    assert_true(read_text(place, deep, &err) < 0);
    free(deep);
}

static int read_words(struct place *place, const char *config, const char *option)
{
    char program[] = "mgpud", flag[] = "--config";
    _cleanup_free_ char *file = xstrdup(config), *word = xstrdup(option);
    char *argv[] = { program, flag, file, word, NULL };
    struct settings_wish wish;
    struct error err = { 0 };
    int r = settings_read(4, argv, true, &place->options, &wish, &err);
    if (r < 0)
        print_message("%s\n", err.message);
    return r;
}

static void drop_ins_come_in_order_and_the_command_line_last(void **state)
{
    struct place *place = *state;
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

static void what_differs_is_told_with_what_needs_a_restart(void **state)
{
    struct place *place = *state;
    struct controller_options after;
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
    settings_clear(&after);
}

#define CASE(test_) cmocka_unit_test_setup_teardown(test_, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_default_is_a_value_that_its_setting_takes),
        CASE(the_defaults_that_are_told_are_those_in_force),
        CASE(a_mistake_is_told_with_its_line),
        CASE(anchors_are_followed_and_cannot_blow_up),
        CASE(a_file_too_long_or_no_file_is_refused),
        CASE(drop_ins_come_in_order_and_the_command_line_last),
        CASE(what_differs_is_told_with_what_needs_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
