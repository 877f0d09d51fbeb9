/* SPDX-License-Identifier: MIT */
#include "cli/show/usage_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "unit_test.h"

static json_t *object(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

TEST(a_sentence_has_what_was_measured)
{
    _cleanup_json_ json_t *usage = object("{\"utilization\": 0.91, \"utilization_peak\": 1.0,"
                                          "\"gpu_memory_peak_bytes\": 19541852979,"
                                          "\"gpu_memory_bytes\": 25769803776, \"energy_joules\": 1800000}");
    _cleanup_free_ char *text = usage_sentence(usage);
    assert_string_equal(text, "91 % busy (peak 100 %), at most 18.2 of 24.0 GiB, 0.50 kWh");
}

TEST(nothing_measured_is_no_sentence)
{
    _cleanup_json_ json_t *usage = object("{\"utilization\": null, \"energy_joules\": null}");
    assert_null(usage_sentence(usage));
    assert_null(usage_sentence(NULL));
    assert_null(usage_stray(usage));
    assert_null(usage_idle(usage));
}

TEST(a_stray_and_an_idle_job_are_told)
{
    _cleanup_json_ json_t *usage =
        object("{\"stray_gpus\": \"0,3\", \"idle_s\": 60, \"idle\": null, \"idle_end_s\": 90}");
    _cleanup_free_ char *stray = usage_stray(usage), *idle = usage_idle(usage);
    assert_string_equal(stray, "uses GPU 0,3, which is not allocated to it");
    assert_string_equal(idle, "has left its GPUs unused for 1m00s; it will be ended after 1m30s");
    assert_null(usage_idle_mark(&(struct screen){ 0 }, usage));
}

TEST(energy_is_shown_in_watt_hours_and_kilowatt_hours)
{
    _cleanup_json_ json_t *little = object("{\"energy_joules\": 18000}"),
                          *much = object("{\"energy_joules\": 9000000}");
    _cleanup_free_ char *few = usage_sentence(little), *many = usage_sentence(much);
    assert_string_equal(few, "5.0 Wh");
    assert_string_equal(many, "2.50 kWh");
}

TEST(a_told_job_has_a_mark_that_names_the_time)
{
    _cleanup_json_ json_t *job = object("{\"idle_s\": 5, \"idle\": \"yields\"}");
    _cleanup_free_ char *plain = usage_idle_mark(&(struct screen){ 0 }, job);
    _cleanup_free_ char *fine = usage_idle_mark(&(struct screen){ .is_utf8 = true }, job);
    _cleanup_free_ char *idle = usage_idle(job);
    assert_string_equal(plain, "! idle 5s");
    assert_string_equal(fine, "⚠ idle 5s");
    assert_string_equal(idle, "has left its GPUs unused for 5s; other jobs can preempt it");
}

TEST(gpus_that_are_unused_beside_others_are_named)
{
    _cleanup_json_ json_t *job = object("{\"granted\": [{\"index\": 4}, {\"index\": 1}, {\"index\": 7}],"
                                        " \"usage\": {\"gpus_idle_s\": [0, 90, 61.5]}}");
    _cleanup_json_ json_t *all =
        object("{\"granted\": [{\"index\": 4}], \"usage\": {\"gpus_idle_s\": [90]}}");
    _cleanup_json_ json_t *none = object("{\"usage\": null}");
    _cleanup_free_ char *text = usage_idle_gpus(job);
    assert_string_equal(text, "has left GPU 1,7 unused for 1m01s");
    assert_null(usage_idle_gpus(all));
    assert_null(usage_idle_gpus(none));
}

TEST(a_timeline_is_drawn_without_what_nobody_measured)
{
    _cleanup_json_ json_t *usage =
        object("{\"bucket_seconds\": 2, \"timeline\": [[0, null, null], [100, null, null]]}");
    const struct screen screen = { .is_utf8 = false };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    usage_print_timeline(&screen, usage, out);
    (void)fclose(out);
    assert_non_null(strstr(text, "busy   _#\n"));
    assert_non_null(strstr(text, "one column is 2s"));
    assert_null(strstr(text, "power"));
    free(text);
}
