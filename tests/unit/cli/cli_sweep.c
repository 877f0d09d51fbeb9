/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/sweep.h"
#include "job/spec.h"
#include "unit_test.h"

/* The requests that these sweeps make; `second` may be NULL. */
static json_t *expand(const char *first, const char *second, json_t *request)
{
    _cleanup_strings_ struct strings sweeps = { 0 };
    json_t *requests = json_array();
    struct error err = { 0 };
    strings_add(&sweeps, first);
    if (second != NULL)
        strings_add(&sweeps, second);
    if (sweep_expand(&sweeps, request, requests, &err) < 0)
        fail_msg("%s", err.message);
    return requests;
}

static json_t *make_request(void)
{
    return json_pack("{s:[s,s], s:s, s:{s:s}}", "command", "bin/train", "--lr={lr}{x}", "output",
        "out/{lr}/o", "env", "HOME", "/h");
}

TEST(values_are_words_and_ranges)
{
    static const struct {
        const char *text, *values;
    } rows[] = {
        { "x=a", "a" },
        { "x=0.1,0.01", "0.1 0.01" },
        { "x=1-3", "1 2 3" },
        { "x=7,1-2,7-7", "7 1 2 7" },
        { "x=0-1", "0 1" },
        { "x=01-03", "01-03" },
        { "x=0.1-0.3", "0.1-0.3" },
        { "x=2026-11-22", "2026-11-22" },
        { "x=-1", "-1" },
        { "x=a\\,b,1\\-2,c\\\\", "a,b 1-2 c\\" },
        { "x=a=b", "a=b" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_json_ json_t *request = json_pack("{s:s, s:{}}", "command", "true", "env");
        _cleanup_json_ json_t *requests = expand(rows[i].text, NULL, request);
        _cleanup_buffer_ struct buffer all = { 0 };
        size_t index = 0;
        json_t *one = NULL;
        json_array_foreach(requests, index, one)
            buffer_printf(&all, "%s%s", index > 0 ? " " : "", field_text(json_object_get(one, "env"), "x"));
        assert_string_equal(buffer_text(&all), rows[i].values);
    }
}

TEST(the_first_sweep_changes_slowest)
{
    _cleanup_json_ json_t *request = make_request();
    _cleanup_json_ json_t *requests = expand("lr=a/b,2", "x=1-3", request);
    assert_int_equal(json_array_size(requests), 6);
    const json_t *second = json_array_get(requests, 1);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(second, "command"), 1)), "--lr=a/b2");
    assert_string_equal(field_text(second, "name"), "train-lr=a/b-x=2");
    assert_string_equal(field_text(second, "output"), "out/a_b/o");
    assert_string_equal(field_text(json_object_get(second, "env"), "lr"), "a/b");
    assert_string_equal(field_text(json_object_get(second, "env"), "HOME"), "/h");
    assert_string_equal(field_text(json_array_get(requests, 5), "name"), "train-lr=2-x=3");
    assert_null(field_text(json_object_get(request, "env"), "lr"));
}

TEST(a_name_that_would_be_too_long_is_numbered)
{
    char value[SPEC_NAME_MAX + 4] = "x=";
    _cleanup_json_ json_t *request = make_request();
    memset(value + 2, 'v', sizeof(value) - 3);
    value[sizeof(value) - 1] = '\0';
    _cleanup_json_ json_t *requests = expand(value, "lr=1,2", request);
    assert_string_equal(field_text(json_array_get(requests, 1), "name"), "train-2");
}

TEST(what_is_no_sweep_is_refused)
{
    static const struct {
        const char *first, *second, *what;
        int code;
    } rows[] = {
        { "x", NULL, "'x' is not NAME=VALUES", -EINVAL },
        { "x=1,", NULL, "a value is empty", -EINVAL },
        { "x=5-1", NULL, "5-1 is reversed", -EINVAL },
        { "x=1", "x=2", "x is given twice", -EINVAL },
        { "CUDA_VISIBLE_DEVICES=0", NULL, "is set by mgpu itself", -EINVAL },
        { "x=0-1000", NULL, "has more than 1000 values", -E2BIG },
        { "x=1-40", "y=1-40", "at most 1000", -E2BIG },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings sweeps = { 0 };
        _cleanup_json_ json_t *request = make_request(), *requests = json_array();
        struct error err = { 0 };
        strings_add(&sweeps, rows[i].first);
        if (rows[i].second != NULL)
            strings_add(&sweeps, rows[i].second);
        assert_int_equal(sweep_expand(&sweeps, request, requests, &err), rows[i].code);
        assert_non_null(strstr(err.message, rows[i].what));
    }
}
