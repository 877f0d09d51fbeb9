/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "unit_test.h"

struct options {
    bool is_loud;
    const char *word, *text;
    char *name, *path, *library;
    int64_t number, expiry_ms;
    uint32_t count;
};

static const struct option_row rows[] = {
    { 'l', "loud", NULL, "", OPTION_VALUE(flag, struct options, is_loud) },
    { 0, "word", "W", "", OPTION_VALUE(word, struct options, word) },
    { 't', "text", "T", "", OPTION_VALUE(text, struct options, text) },
    { 0, "name", "N", "", OPTION_VALUE(copy, struct options, name) },
    { 0, "path", "P", "", OPTION_VALUE(path, struct options, path) },
    { 0, "library", "L", "", OPTION_VALUE(library, struct options, library) },
    { 0, "number", "N", "", OPTION_VALUE(integer, struct options, number), OPTION_RANGE(-2, 5) },
    { 0, "count", "N", "", OPTION_VALUE(count, struct options, count), OPTION_RANGE(1, 9) },
    { 0, "expiry", "T", "", OPTION_VALUE(expiry, struct options, expiry_ms) },
    { 0 },
};

static int set(void *target, const char *name, const char *value, struct error *err)
{
    static const struct option_row *const tables[] = { rows, NULL };
    return options_set(target, options_find(tables, name, strlen(name)), value, err);
}

static int setup(void **state)
{
    *state = xcalloc(1, sizeof(struct options));
    return 0;
}

static int teardown(void **state)
{
    struct options *options = *state;
    free(options->name);
    free(options->path);
    free(options->library);
    free(options);
    return 0;
}

#define CASE(name, options) TEST_ON(name, struct options *options, setup, teardown)

CASE(a_value_goes_into_the_member_that_its_row_names, options)
{
    struct error err;
    assert_int_equal(set(options, "loud", NULL, &err), 0);
    assert_int_equal(set(options, "word", "", &err), 0);
    assert_int_equal(set(options, "text", "b", &err), 0);
    assert_int_equal(set(options, "name", "old", &err), 0);
    assert_int_equal(set(options, "name", "new", &err), 0);
    assert_int_equal(set(options, "number", "-2", &err), 0);
    assert_int_equal(set(options, "count", "9", &err), 0);
    assert_int_equal(set(options, "expiry", "2m", &err), 0);
    assert_true(options->is_loud);
    assert_string_equal(options->word, "");
    assert_string_equal(options->text, "b");
    assert_string_equal(options->name, "new");
    assert_int_equal(options->number, -2);
    assert_int_equal(options->count, 9);
    assert_int_equal(options->expiry_ms, 120000);
}

CASE(a_flag_of_a_file_can_be_false, options)
{
    struct error err;
    assert_int_equal(set(options, "loud", "true", &err), 0);
    assert_true(options->is_loud);
    assert_int_equal(set(options, "loud", "false", &err), 0);
    assert_false(options->is_loud);
}

CASE(an_inner_member_is_in_the_struct_that_the_target_points_to, options)
{
    struct {
        struct options *options;
    } outer = { options };
    const struct option_row row = { 0, "count", "N", "", OPTION_INNER(count, struct options, count),
        OPTION_RANGE(0, 9) };
    struct error err;
    assert_int_equal(options_set(&outer, &row, "4", &err), 0);
    assert_int_equal(outer.options->count, 4);
}

CASE(a_path_is_made_absolute, options)
{
    struct error err;
    char here[PATH_MAX];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(set(options, "path", "/a/b", &err), 0);
    assert_string_equal(options->path, "/a/b");
    assert_int_equal(set(options, "path", "c", &err), 0);
    _cleanup_free_ char *expected = xasprintf("%s/c", here);
    assert_string_equal(options->path, expected);
    assert_int_equal(set(options, "library", "/lib/x.so", &err), 0);
    assert_string_equal(options->library, "/lib/x.so");
    assert_int_equal(set(options, "library", "auto", &err), 0);
    assert_null(options->library);
}

CASE(a_value_that_is_refused_changes_nothing_and_is_named_as_it_was_typed, options)
{
    static const struct {
        const char *name, *value, *message;
    } bad[] = {
        { "text", "", "-t: the value is empty" },
        { "path", "", "--path is empty" },
        { "library", "", "--library is empty" },
        { "number", "6", "--number" },
        { "count", "0", "--count" },
        { "expiry", "10ms", "--expiry" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct error err = { 0 };
        assert_true(set(options, bad[i].name, bad[i].value, &err) < 0);
        assert_non_null(strstr(err.message, bad[i].message));
    }
    static const struct options nothing = { 0 };
    assert_memory_equal(options, &nothing, sizeof(nothing));
}
