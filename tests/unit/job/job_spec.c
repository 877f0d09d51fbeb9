/* SPDX-License-Identifier: MIT */
/* Requests of users: every refusal names the field, and no reasonable request is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/spec.h"
#include "unit_test.h"

static int make_spec(void **state)
{
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    strings_add(&spec->command, "/usr/bin/python3");
    strings_add(&spec->command, "train.py");
    spec->cwd = xstrdup("/home/ana");
    *state = spec;
    return 0;
}

static int free_spec(void **state)
{
    job_spec_free(*state);
    return 0;
}

#define CASE(name, spec) TEST_ON(name, struct job_spec *spec, make_spec, free_spec)

static void set(char **field, const char *text)
{
    free(*field);
    *field = xstrdup(text);
}

static void set_repeated(char **field, char letter, size_t count)
{
    free(*field);
    *field = xcalloc(count + 1, 1);
    memset(*field, letter, count);
}

/* Validation fails with `code` and a sentence that has `word` in it. */
static void assert_refused(const struct job_spec *spec, int code, const char *word)
{
    struct error err = { 0 };
    assert_int_equal(job_spec_validate(spec, &err), code);
    assert_non_null(strstr(err.message, word));
}

CASE(a_plain_request_asks_for_one_gpu_and_is_accepted, spec)
{
    assert_int_equal(spec->ask.gpus, 1);
    assert_int_equal(spec->umask, 022);
    assert_int_equal(job_spec_validate(spec, NULL), 0);
}

CASE(a_request_without_a_command_is_refused_with_an_example, spec)
{
    struct error err = { 0 };
    strings_clear(&spec->command);
    assert_int_equal(job_spec_validate(spec, &err), -EINVAL);
    assert_non_null(strstr(err.hint, "mgpu submit"));
    strings_add(&spec->command, "");
    assert_refused(spec, -EINVAL, "command");
}

CASE(the_working_directory_must_be_absolute, spec)
{
    set(&spec->cwd, "home");
    assert_refused(spec, -EINVAL, "cwd");
    set(&spec->cwd, "/home/ana");
    set(&spec->cwd_fallback, "there");
    assert_refused(spec, -EINVAL, "cwd_fallback: 'there' is not a fallback directory");
    set(&spec->cwd_fallback, "tmp");
    set(&spec->cwd, NULL);
    assert_refused(spec, -EINVAL, "cwd");
}

CASE(priority_and_umask_have_bounds, spec)
{
    spec->ask.priority = ASK_PRIORITY_MAX;
    assert_int_equal(job_spec_validate(spec, NULL), 0);
    spec->ask.priority = ASK_PRIORITY_MAX + 1;
    assert_refused(spec, -ERANGE, "priority");
    spec->ask.priority = -ASK_PRIORITY_MAX - 1;
    assert_refused(spec, -ERANGE, "priority");
    spec->ask.priority = 0;
    spec->umask = 01000;
    assert_refused(spec, -ERANGE, "umask");
}

CASE(texts_have_limits_and_are_not_empty, spec)
{
    set_repeated(&spec->name, 'n', SPEC_NAME_MAX);
    assert_int_equal(job_spec_validate(spec, NULL), 0);
    set_repeated(&spec->name, 'n', SPEC_NAME_MAX + 1);
    assert_refused(spec, -E2BIG, "name");
    set(&spec->name, "");
    assert_refused(spec, -EINVAL, "name is empty");
    set(&spec->name, NULL);
    set_repeated(&spec->setup, 's', SPEC_SETUP_MAX + 1);
    assert_refused(spec, -E2BIG, "setup");
    set(&spec->setup, NULL);
    set(&spec->output, "");
    assert_refused(spec, -EINVAL, "output");
}

CASE(a_name_holds_no_control_characters, spec)
{
    set(&spec->name, "tr\x1b[31main");
    assert_refused(spec, -EINVAL, "control character");
}

CASE(command_and_environment_have_limits, spec)
{
    char *word = NULL;
    set_repeated(&word, 'x', SPEC_COMMAND_MAX);
    strings_take(&spec->command, word);
    assert_refused(spec, -E2BIG, "command");
    strings_clear(&spec->command);
    strings_add(&spec->command, "true");
    char *entry = NULL;
    set_repeated(&entry, 'x', SPEC_ENV_MAX);
    entry[1] = '=';
    strings_take(&spec->env, entry);
    assert_refused(spec, -E2BIG, "env");
}

CASE(an_environment_entry_has_a_name, spec)
{
    strings_add(&spec->env, "=x");
    assert_refused(spec, -EINVAL, "NAME=value");
    strings_clear(&spec->env);
    strings_add(&spec->env, "novalue");
    assert_refused(spec, -EINVAL, "novalue");
}

CASE(gpu_requests_must_make_sense, spec)
{
    spec->ask.gpus = SPEC_GPUS_MAX + 1;
    assert_refused(spec, -ERANGE, "gpus");
    spec->ask.gpus = 0;
    spec->ask.gpu_mem = 1;
    assert_refused(spec, -EINVAL, "gpu_mem");
    spec->ask.gpu_mem = 0;
    assert_int_equal(job_spec_validate(spec, NULL), 0);
    spec->ask.gpus = 2;
    set(&spec->ask.gpu_ids, "0,2-3");
    assert_refused(spec, -EINVAL, "3 GPUs");
    set(&spec->ask.gpu_ids, "3,3");
    assert_refused(spec, -EINVAL, "twice");
    set(&spec->ask.gpu_ids, "3,0");
    assert_int_equal(job_spec_validate(spec, NULL), 0);
}

CASE(the_request_is_checked_with_the_rest, spec)
{
    spec->ask.nodes = 2;
    assert_refused(spec, -EINVAL, "more nodes than GPUs");
    spec->ask.nodes = 0;
    set(&spec->ask.array, "3-");
    assert_refused(spec, -EINVAL, "array");
    set(&spec->ask.array, NULL);
    spec->ask.begin_ms = 5;
    spec->hold = true;
    assert_int_equal(job_spec_validate(spec, NULL), 0);
}

CASE(a_request_is_read_back_with_what_it_asks_for, spec)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_(job_spec_clear) struct job_spec back;
    set(&spec->ask.after, "41");
    spec->ask.cpu_milli = 2500;
    spec->ask.deadline_ms = ASK_YEAR_9999_MS;
    spec->hold = true;
    record_encode(&job_spec_record, spec, &bytes);
    assert_int_equal(record_decode(&job_spec_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_true(job_ask_equal(&spec->ask, &back.ask));
    assert_true(back.hold);
}

CASE(the_shown_name_is_the_commands_last_component, spec)
{
    _cleanup_free_ char *by_command = job_spec_display_name(spec);
    assert_string_equal(by_command, "python3");
    set(&spec->name, "train");
    _cleanup_free_ char *by_name = job_spec_display_name(spec);
    assert_string_equal(by_name, "train");
}

CASE(a_command_cannot_smuggle_control_bytes_into_the_shown_name, spec)
{
    set(&spec->command.items[0], "/bin/\x1b[2J");
    _cleanup_free_ char *name = job_spec_display_name(spec);
    assert_null(strchr(name, '\x1b'));
}

/* For any name of the command: the field that carries the name to the node has this limit. */
CASE(the_shown_name_is_never_longer_than_a_name_may_be, spec)
{
    static const char *const units[] = { "a", "\x01", "\xff", "€" };
    for (size_t unit = 0; unit < sizeof(units) / sizeof(units[0]); unit++) {
        char word[4 * 200 + 16] = "/bin/";
        for (size_t n = 0; n < 200; n++) {
            strcat(word, units[unit]);
            set(&spec->command.items[0], word);
            _cleanup_free_ char *name = job_spec_display_name(spec);
            assert_in_range(strlen(name), 1, SPEC_NAME_MAX);
        }
    }
}

CASE(the_same_request_hashes_alike_whatever_its_key, spec)
{
    uint64_t hash = job_spec_hash(spec);
    set(&spec->submit_key, "k1");
    assert_true(job_spec_hash(spec) == hash);
    spec->ask.priority = 1;
    assert_true(job_spec_hash(spec) != hash);
}

/* As versions before this one made it, whose hashes are in the store. */
static uint64_t hash_without_key(const struct job_spec *spec)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct job_spec keyless = *spec;
    keyless.submit_key = NULL;
    record_encode(&job_spec_record, &keyless, &bytes);
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < bytes.length; i++)
        hash = (hash ^ bytes.bytes[i]) * 0x100000001b3ULL;
    return hash;
}

CASE(a_request_is_encoded_once_with_the_hash_that_is_in_stores, spec)
{
    set(&spec->submit_key, "k1");
    set(&spec->image, "docker://x"); // after the key in the record
    struct spec_bytes *bytes = spec_bytes_new(spec), *held = spec_bytes_hold(bytes);
    assert_true(bytes->hash == hash_without_key(spec));
    assert_true(bytes->hash == job_spec_hash(spec));
    assert_string_equal(bytes->submit_key, "k1");
    spec_bytes_drop(bytes);
    struct job_spec *back = spec_bytes_decode(held);
    assert_string_equal(back->submit_key, "k1");
    assert_string_equal(back->image, "docker://x");
    job_spec_free(back);
    spec_bytes_drop(held);
}

TEST_WITH(a_launch_carries_the_bytes_of_the_request_with_its_edits, make_spec, free_spec)
{
    struct job_spec *spec = *state, carried;
    set(&spec->name, "old");
    set(&spec->image, "docker://x"); // after the request for resources in the record
    spec->ask.time_limit_ms = 5000;
    spec->ask.priority = 3;
    struct spec_bytes *bytes = spec_bytes_new(spec);
    struct job_ask ask = spec->ask; // borrowed
    ask.time_limit_ms = 0;
    ask.memory = 1U << 30;
    struct record_bytes packed;
    struct error err;
    spec_bytes_pack(bytes, NULL, &ask, &packed);
    assert_int_equal(record_unpack(&job_spec_record, &packed, &carried, &err), 0);
    assert_null(carried.name);
    assert_string_equal(carried.image, "docker://x");
    assert_string_equal(carried.command.items[0], spec->command.items[0]);
    assert_true(job_ask_equal(&carried.ask, &ask));
    job_spec_clear(&carried);
    free(packed.bytes);
    spec_bytes_drop(bytes);
}

/* Its node completes it: repeated, it comes without what was completed. */
CASE(adoption_has_the_same_hash_before_and_after_completion, spec)
{
    spec->ask.adopted_pid = 7;
    set(&spec->submit_key, "k1");
    uint64_t hash = job_spec_hash(spec);
    spec->ask.adopted_start = 99;
    set(&spec->ask.adopted_boot, "boot");
    spec->ask.gpus = 3;
    struct spec_bytes *bytes = spec_bytes_new(spec);
    assert_true(bytes->hash == hash);
    spec_bytes_drop(bytes);
}

TEST(a_request_that_could_not_be_read_is_empty)
{
    struct spec_bytes *bytes = spec_bytes_new(NULL);
    struct record_bytes packed;
    assert_null(spec_bytes_decode(bytes));
    spec_bytes_pack(bytes, NULL, &(struct job_ask){ .gpus = 1 }, &packed);
    assert_int_equal(packed.length, 0);
    spec_bytes_drop(bytes);
}
