/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/submit.h"
#include "unit_test.h"

static int try_build(const struct submit_options *options, const char *const *words, json_t **ret,
    unsigned *ret_left_out, struct error *err)
{
    _cleanup_strings_ struct strings argv = { 0 };
    for (; *words != NULL; words++)
        strings_add(&argv, *words);
    _cleanup_json_ json_t *command = NULL;
    int r = submit_command((int)argv.count, argv.items, &command, err);
    return r < 0 ? r : submit_build(options, command, ret, ret_left_out, err);
}

static json_t *build(const struct submit_options *options, const char *const *words)
{
    json_t *request = NULL;
    unsigned left_out = 0;
    assert_int_equal(try_build(options, words, &request, &left_out, NULL), 0);
    return request;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

TEST(several_words_are_sent_as_they_are)
{
    struct submit_options options = { 0 };
    _cleanup_json_ json_t *request = build(&options, WORDS("echo", "a b"));
    const json_t *command = json_object_get(request, "command");
    assert_int_equal(json_array_size(command), 2);
    assert_string_equal(json_string_value(json_array_get(command, 1)), "a b");
}

TEST(one_word_of_shell_text_is_for_a_shell)
{
    struct submit_options options = { 0 };
    _cleanup_json_ json_t *request = build(&options, WORDS("echo a | cat"));
    assert_string_equal(field_text(request, "command"), "echo a | cat");
    _cleanup_json_ json_t *plain = build(&options, WORDS("./train.sh"));
    assert_true(json_is_array(json_object_get(plain, "command")));
}

TEST(a_file_with_a_blank_in_its_name_is_no_shell_text)
{
    struct submit_options options = { 0 };
    char name[] = "/tmp/mgpu test XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    _cleanup_json_ json_t *request = build(&options, WORDS(name));
    assert_true(json_is_array(json_object_get(request, "command")));
    (void)close(fd);
    (void)unlink(name);
}

TEST(options_become_members_of_the_request)
{
    _cleanup_(submit_options_clear) struct submit_options options = {
        .ask = json_pack("{s:i, s:s}", "gpus", 2, "name", "n"),
        .directory = "/tmp",
        .setup.command = "s",
        .output = "o",
        .is_held = true,
    };
    _cleanup_json_ json_t *request = build(&options, WORDS("true"));
    assert_int_equal(field_integer(request, "gpus", 0), 2);
    assert_string_equal(field_text(request, "name"), "n");
    assert_string_equal(field_text(request, "cwd"), "/tmp");
    assert_string_equal(field_text(request, "setup"), "s");
    assert_string_equal(field_text(request, "output"), "o");
    assert_true(json_is_true(json_object_get(request, "hold")));
}

TEST(options_that_contradict_each_other_are_refused)
{
    _cleanup_(submit_options_clear) struct submit_options options = { .ask = json_pack("{s:i, s:i}", "gpus",
                                                                          0, "gpu_mem", 1) };
    json_t *request = NULL;
    unsigned left_out = 0;
    struct error err = { 0 };
    assert_int_equal(try_build(&options, WORDS("true"), &request, &left_out, &err), -EINVAL);
    assert_string_equal(err.message, "-m has no effect with -g 0");
}

TEST(what_was_not_asked_is_not_sent)
{
    struct submit_options options = { 0 };
    _cleanup_json_ json_t *request = build(&options, WORDS("true"));
    assert_null(json_object_get(request, "gpus"));
    assert_null(json_object_get(request, "name"));
    assert_null(json_object_get(request, "output"));
    assert_null(json_object_get(request, "hold"));
}

TEST(the_directory_umask_and_environment_are_the_callers)
{
    _cleanup_(submit_options_clear) struct submit_options options = { 0 };
    (void)unsetenv("PWD");
    (void)setenv("MGPU_TEST_VARIABLE", "inherited", 1);
    strings_add(&options.env, "MGPU_TEST_OTHER=given");
    mode_t old = umask(027);
    _cleanup_json_ json_t *request = build(&options, WORDS("true"));
    assert_int_equal(umask(old), 027);
    const json_t *env = json_object_get(request, "env");
    _cleanup_free_ char *here = getcwd(NULL, 0);
    assert_string_equal(field_text(env, "MGPU_TEST_VARIABLE"), "inherited");
    assert_string_equal(field_text(env, "MGPU_TEST_OTHER"), "given");
    assert_string_equal(field_text(request, "cwd"), here);
    assert_int_equal(field_integer(request, "umask", 0), 027);
}

TEST(a_relative_directory_starts_here)
{
    struct submit_options options = { .directory = "sub" };
    assert_int_equal(chdir("/tmp"), 0);
    (void)setenv("PWD", "/wrong", 1);
    _cleanup_json_ json_t *request = build(&options, WORDS("true"));
    assert_string_equal(field_text(request, "cwd"), "/tmp/sub");
}

TEST(every_submission_has_a_key_of_its_own)
{
    struct submit_options options = { 0 };
    _cleanup_json_ json_t *first = build(&options, WORDS("true"));
    _cleanup_json_ json_t *second = build(&options, WORDS("true"));
    assert_int_equal(strlen(field_text(first, "submit_key")), 32);
    assert_string_not_equal(field_text(first, "submit_key"), field_text(second, "submit_key"));
}

TEST(bytes_that_are_no_text_are_counted_or_refused)
{
    struct submit_options options = { 0 };
    json_t *request = NULL;
    unsigned left_out = 0;
    struct error err = { 0 };
    (void)setenv("MGPU_TEST_VARIABLE", "\xff", 1);
    assert_int_equal(try_build(&options, WORDS("true"), &request, &left_out, &err), 0);
    assert_int_equal(left_out, 1);
    json_decref(request);
    assert_int_equal(try_build(&options, WORDS("echo", "\xff"), &request, &left_out, &err), -EINVAL);
    assert_string_equal(err.message, "word 2 of the command is not UTF-8 text");
    assert_int_equal(try_build(&options, WORDS(NULL), &request, &left_out, &err), -EINVAL);
    (void)unsetenv("MGPU_TEST_VARIABLE");
}

TEST(a_list_for_the_count_is_refused_with_a_hint)
{
    _cleanup_(submit_options_clear) struct submit_options options = { 0 };
    struct call call = { .options = &options };
    struct error err = { 0 };
    const struct option_row *row = submit_rows;
    while (strcmp(row->name, "gpus") != 0)
        row++;
    assert_int_equal(options_set(&call, row, "0,1", &err), -EINVAL);
    assert_string_equal(err.hint, "for exactly these GPUs, use -G 0,1");
    assert_int_equal(options_set(&call, row, "-1", &err), -EINVAL);
    assert_int_equal(options_set(&call, row, "1.5", &err), -EINVAL);
    assert_int_equal(options_set(&call, row, "0", &err), 0);
    assert_int_equal(field_integer(options.ask, "gpus", 7), 0);
}
