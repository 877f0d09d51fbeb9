/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/environment.h"
#include "cli/options/env_file.h"
#include "unit_test.h"

/* The result of reading a file with that text; the name in the sentence is cut off. */
static int read_bytes(const char *text, size_t length, json_t **ret, struct error *err)
{
    char path[] = "/tmp/mgpu-env-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, text, length), 0);
    (void)close(fd);
    int r = env_file_read(path, ret, err);
    (void)unlink(path);
    return r;
}

TEST(values_are_plain_or_quoted)
{
    static const char text[] =
        "# a comment\n\n  A=1\nexport B=two words \nC='as $it \\n is' # why\nD=\"x\\ty\\\"z\\\\\"\n"
        "E=\nF=a#b # c\r\nG=\"\"\nA=again";
    json_t *found = NULL;
    assert_int_equal(read_bytes(text, strlen(text), &found, NULL), 0);
    assert_string_equal(field_text(found, "A"), "again");
    assert_string_equal(field_text(found, "B"), "two words");
    assert_string_equal(field_text(found, "C"), "as $it \\n is");
    assert_string_equal(field_text(found, "D"), "x\ty\"z\\");
    assert_string_equal(field_text(found, "E"), "");
    assert_string_equal(field_text(found, "F"), "a#b");
    assert_string_equal(field_text(found, "G"), "");
    assert_int_equal(json_object_size(found), 7);
    json_decref(found);
}

TEST(a_bad_line_is_told_with_its_number)
{
    static const struct {
        const char *text, *end;
    } rows[] = {
        { "A=1\nword\n", ":2: 'word' is not NAME=VALUE" },
        { "1A=2\n", ":1: '1A' is not a valid variable name" },
        { "=2\n", ":1: '' is not a valid variable name" },
        { "\n\nA='x\n", ":3: a quote is not closed" },
        { "A=\"x\" y\n", ":1: 'y' follows the closing quote" },
        { "A=\xff\n", ":1: the value of A is not UTF-8 text" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = { 0 };
        json_t *found = NULL;
        assert_int_equal(read_bytes(rows[i].text, strlen(rows[i].text), &found, &err), -EINVAL);
        assert_non_null(strstr(err.message, rows[i].end));
        assert_null(found);
    }
}

TEST(what_is_no_file_of_text_is_refused)
{
    struct error err = { 0 };
    json_t *found = NULL;
    assert_int_equal(env_file_read("/nowhere/env", &found, &err), -ENOENT);
    assert_string_equal(err.message, "--env-file: cannot read /nowhere/env: No such file or directory");
    assert_int_equal(env_file_read("/tmp", &found, &err), -EISDIR);
    assert_int_equal(read_bytes("A=\0b", 4, &found, &err), -EINVAL);
    assert_non_null(strstr(err.message, "is not text: it contains a zero byte"));
    _cleanup_free_ char *large = xcalloc(ENV_FILE_MAX + 1, 1);
    memset(large, '#', ENV_FILE_MAX + 1);
    assert_int_equal(read_bytes(large, ENV_FILE_MAX + 1, &found, &err), -EFBIG);
    assert_null(found);
}

/* The variables of a job whose submitter has HOME, LC_ALL, SECRET and OTHER. */
static int make(const char *export, json_t *files, const char *given, json_t **ret, struct error *err)
{
    static char home[] = "HOME=/h", locale[] = "LC_ALL=C", secret[] = "SECRET=s", other[] = "OTHER=o";
    char *const inherited[] = { home, locale, secret, other, NULL };
    _cleanup_strings_ struct strings last = { 0 };
    unsigned left_out = 0;
    if (given != NULL)
        strings_add(&last, given);
    return environment_make(export, inherited, files, &last, ret, &left_out, err);
}

TEST(export_chooses_what_is_passed_on)
{
    json_t *env = NULL;
    assert_int_equal(make("all", NULL, NULL, &env, NULL), 0);
    assert_int_equal(json_object_size(env), 4);
    json_decref(env);
    assert_int_equal(make("minimal", NULL, NULL, &env, NULL), 0);
    assert_int_equal(json_object_size(env), 2);
    assert_string_equal(field_text(env, "HOME"), "/h");
    assert_string_equal(field_text(env, "LC_ALL"), "C");
    json_decref(env);
    assert_int_equal(make("OTHER", NULL, NULL, &env, NULL), 0);
    assert_int_equal(json_object_size(env), 3);
    assert_null(field_text(env, "SECRET"));
    json_decref(env);
}

TEST(the_token_of_mgpu_itself_stays_here_unless_it_is_named)
{
    char token[] = "MGPU_TOKEN=t", host[] = "MGPU_HOST=h", other[] = "A=1", given[] = "MGPU_HOST=g";
    char *const inherited[] = { token, host, other, NULL };
    struct strings none = { 0 };
    _cleanup_strings_ struct strings last = { 0 };
    json_t *env = NULL;
    unsigned left_out = 0;
    assert_int_equal(environment_make(NULL, inherited, NULL, &none, &env, &left_out, NULL), 0);
    assert_int_equal(json_object_size(env), 1);
    json_decref(env);
    assert_int_equal(environment_make("MGPU_TOKEN", inherited, NULL, &none, &env, &left_out, NULL), 0);
    assert_string_equal(field_text(env, "MGPU_TOKEN"), "t");
    json_decref(env);
    strings_add(&last, given);
    assert_int_equal(environment_make(NULL, inherited, NULL, &last, &env, &left_out, NULL), 0);
    assert_string_equal(field_text(env, "MGPU_HOST"), "g");
    json_decref(env);
}

TEST(a_name_that_is_not_there_is_refused)
{
    struct error err = { 0 };
    json_t *env = NULL;
    assert_int_equal(make("OTHER,GONE", NULL, NULL, &env, &err), -ENOENT);
    assert_string_equal(err.message, "--export: variable GONE is not set");
}

TEST(files_count_more_than_the_environment_and_less_than_e)
{
    _cleanup_json_ json_t *files = json_pack("{s:s, s:s}", "SECRET", "file", "OTHER", "file");
    _cleanup_json_ json_t *env = NULL;
    assert_int_equal(make(NULL, files, "OTHER=given", &env, NULL), 0);
    assert_string_equal(field_text(env, "SECRET"), "file");
    assert_string_equal(field_text(env, "OTHER"), "given");
}
