/* SPDX-License-Identifier: MIT */
#include "cli/show/progress_text.h"

#include <stdlib.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "unit_test.h"

static const struct screen utf8 = { .is_utf8 = true }, ascii = { 0 };

static json_t *object(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

static void check_bar(const struct screen *screen, const char *job, const char *expected)
{
    _cleanup_json_ json_t *value = object(job);
    _cleanup_free_ char *bar = progress_bar(screen, value);
    assert_string_equal(bar, expected);
}

TEST(a_bar_is_full_only_at_the_end)
{
    check_bar(&utf8, "{\"progress\": 0}", "░░░░░░░░ 0%");
    check_bar(&utf8, "{\"progress\": 0.4}", "███░░░░░ 40%");
    check_bar(&utf8, "{\"progress\": 0.29}", "██░░░░░░ 29%");
    check_bar(&utf8, "{\"progress\": 0.999999}", "███████░ 99%");
    check_bar(&utf8, "{\"progress\": 1.0}", "████████ 100%");
    check_bar(&ascii, "{\"progress\": 0.5}", "[####....] 50%");
    check_bar(&ascii, "{\"progress\": 7}", "[########] 100%");
}

TEST(a_sentence_has_what_was_said)
{
    _cleanup_json_ json_t *both = object("{\"progress\": 1, \"status\": \"red \\u001b[31m\"}");
    _cleanup_json_ json_t *status = object("{\"progress\": null, \"status\": \"epoch 3\"}");
    _cleanup_json_ json_t *none = object("{\"progress\": null, \"status\": null}");
    _cleanup_free_ char *first = progress_sentence(&ascii, both), *second = progress_sentence(&ascii, status);
    assert_string_equal(first, "[########] 100%  red \\x1b[31m");
    assert_string_equal(second, "epoch 3");
    assert_null(progress_sentence(&ascii, none));
    assert_null(progress_bar(&ascii, none));
}
