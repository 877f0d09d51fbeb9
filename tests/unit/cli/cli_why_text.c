/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/why_text.h"
#include "unit_test.h"

/* 2026-11-21 12:30:00 UTC. */
#define NOW_MS INT64_C(1795264200000)

static const char job_text[] = "{\"id\":42,\"name\":\"train\",\"state\":\"queued\",\"gpus\":2,\"gpu_model\":"
                               "\"h200\",\"gpu_mem\":21474836480,"
                               "\"wait_seconds\":300}";

static const char why_text[] =
    "{\"job\":42,\"state\":\"queued\",\"starts_now\":false,\"reasons\":["
    "{\"code\":\"resources\",\"text\":\"gpu1 has 1 such GPU free (5)\",\"jobs\":[39],\"gpus\":[\"gpu1:4\"],"
    "\"until\":\"2026-11-21T13:52:00.000Z\"},"
    "{\"code\":\"solar_flare\",\"text\":\"the \\u001b[2Jsun\",\"jobs\":[],\"gpus\":[],\"until\":null}],"
    "\"position\":2,\"eta\":\"2026-11-21T14:05:00.000Z\",\"eta_basis\":\"similar jobs\","
    "\"eta_latest\":null,\"eta_latest_basis\":\"unknown: job 38 has no time limit\","
    "\"ahead\":[{\"id\":38,\"user\":\"ana\",\"name\":\"ft\",\"gpus\":4,\"eta\":null,"
    "\"ends\":\"2026-11-21T13:52:00.000Z\"}],"
    "\"change\":{\"text\":\"-g 1 fits on GPU 5\",\"edit\":{\"gpus\":1,\"gpu_model\":null}}}";

static void check(const char *job, const char *why, const char *expected)
{
    const struct screen screen = { 0 };
    const struct view view = { .screen = &screen, .times = TIME_ZULU, .now_ms = NOW_MS };
    _cleanup_json_ json_t *job_object = job == NULL ? NULL : json_loads(job, 0, NULL);
    _cleanup_json_ json_t *why_object = json_loads(why, 0, NULL);
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    assert_non_null(why_object);
    FILE *out = open_memstream(&text, &size);
    why_print(&view, job_object, why_object, out);
    (void)fclose(out);
    assert_string_equal(text, expected);
}

TEST(every_blocker_is_told_with_its_end)
{
    check(job_text, why_text,
        "Job 42 (train) has waited 5m00s for 2 GPUs (h200), 20 GiB of memory on each. 2 things block it:\n"
        "  1. Resources     gpu1 has 1 such GPU free (5), until 13:52\n"
        "  2. solar_flare   the \\x1b[2Jsun\n"
        "Ahead of it:\n"
        "  38  ana  ft  4 GPUs  ends about 13:52\n"
        "Starts about 14:05 (similar jobs); the latest start is unknown: job 38 has no time limit.\n"
        "To start now: -g 1 fits on GPU 5 · mgpu edit 42 gpus=1 gpu_model=none\n");
}

TEST(a_narrow_screen_breaks_between_words_and_a_share_is_no_whole_gpu)
{
    const struct screen screen = { .width = 40 };
    const struct view view = { .screen = &screen, .times = TIME_ZULU, .now_ms = NOW_MS };
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    _cleanup_json_ json_t *why = json_loads(
        "{\"reasons\":[{\"code\":\"resources\",\"text\":\"requested 4 GPUs; 0 of 8 are free\"}],"
        "\"ahead\":[{\"id\":8,\"user\":\"ana\",\"name\":\"half\",\"gpus\":1,\"gpu_share\":500},"
        "{\"id\":12,\"user\":\"bo\",\"name\":\"x\",\"gpus\":2,\"eta\":\"2026-11-21T13:52:00.000Z\"}],"
        "\"eta\":\"2026-11-21T14:05:00.000Z\",\"eta_basis\":\"the time limits of jobs 8 and 12\"}",
        0, NULL);
    FILE *out = open_memstream(&text, &size);
    why_print_reasons(&view, why, out);
    (void)fclose(out);
    assert_string_equal(text, "  1. Resources     requested 4 GPUs; 0\n"
                              "                   of 8 are free\n"
                              "Ahead of it:\n"
                              "   8  ana  half  0.5 GPU\n"
                              "  12  bo   x     2 GPUs   starts about 13:52\n"
                              "Starts about 14:05 (the time limits of\n"
                              "  jobs 8 and 12).\n");
}

TEST(the_interval_comes_first_and_the_promise_last)
{
    check(NULL,
        "{\"job\":7,\"starts_now\":false,\"reasons\":[],\"eta\":\"2026-11-21T14:05:00.000Z\","
        "\"eta_from\":\"2026-11-21T13:50:00.000Z\",\"eta_until\":\"2026-11-21T16:20:00.000Z\","
        "\"overtaken_until\":\"2026-11-21T15:00:00.000Z\",\"promised_until\":\"2026-11-21T18:30:00.000Z\","
        "\"promise_basis\":\"6h after it, 30 times its time limit\"}",
        "It would wait.\nStarts between 13:50 and 16:20 (8 of 10 such jobs), about 14:05. Jobs submitted "
        "after 18:30 are placed behind it, unless their priority is higher.\n");
    check(NULL,
        "{\"job\":7,\"starts_now\":false,\"reasons\":[],"
        "\"overtaken_until\":\"2026-11-21T18:30:00.000Z\"}",
        "It would wait.\nIts start cannot be predicted. Jobs submitted after 18:30 are placed behind it as "
        "expected now, unless their priority is higher.\n");
}

TEST(it_says_why_no_job_is_parked_for_it)
{
    check(NULL,
        "{\"job\":7,\"starts_now\":false,\"reasons\":[],"
        "\"parking\":{\"job\":3,\"text\":\"job 3 is not parked for this one, because it\\u001b runs on a "
        "terminal\"}}",
        "It would wait.\nIts start cannot be predicted.\nParking: job 3 is not parked for this one, because "
        "it\\x1b runs on a terminal.\n");
    check(NULL, "{\"job\":7,\"starts_now\":false,\"reasons\":[],\"parking\":null}",
        "It would wait.\nIts start cannot be predicted.\n");
}

TEST(with_verbose_the_promise_comes_with_its_numbers)
{
    const struct screen screen = { 0 };
    const struct view view = { &screen, TIME_ZULU, NOW_MS, .is_verbose = true };
    _cleanup_json_ json_t *why =
        json_loads("{\"reasons\":[],\"eta\":\"2026-11-21T14:05:00.000Z\",\"overtaken_until\":"
                   "\"2026-11-21T15:00:00.000Z\",\"promised_until\":\"2026-11-21T18:30:00.000Z\","
                   "\"promise_basis\":\"6h after it, 30 times its time limit\"}",
            0, NULL);
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    why_print_reasons(&view, why, out);
    (void)fclose(out);
    assert_string_equal(text,
        "Starts about 14:05. Jobs submitted after 15:00 are placed behind it as expected now, and those "
        "submitted after 18:30 (6h after it, 30 times its time limit) in any case, unless their priority is "
        "higher.\n");
}

TEST(what_no_event_ends_comes_with_its_command)
{
    check("{\"id\":42,\"name\":\"train\",\"state\":\"queued\",\"gpus\":1,\"wait_seconds\":300}",
        "{\"job\":42,\"reasons\":[{\"code\":\"held_user\",\"text\":\"held by its owner\"},"
        "{\"code\":\"dependency_never\",\"text\":\"dead\"},{\"code\":\"begin_time\",\"text\":\"later\"},"
        "{\"code\":\"held_admin\",\"text\":\"held by an administrator\"}]}",
        "Job 42 (train) has waited 5m00s for 1 GPU. 4 things block it:\n  1. Held          held by its "
        "owner\n  2. Dependency    dead\n  3. Begin time    later\n  4. Held          held by an "
        "administrator\nIts start cannot be predicted.\nTo let it start: mgpu release 42 · mgpu edit 42 "
        "after= · mgpu edit 42 begin=\n");
}

TEST(the_change_it_offers_can_be_typed)
{
    check(NULL,
        "{\"job\":42,\"starts_now\":true,\"reasons\":[],"
        "\"change\":{\"text\":\"less\",\"edit\":{\"gpu_mem\":8589934592,\"memory\":1610612736,"
        "\"time_limit\":5400}}}",
        "It would start now.\n"
        "To start now: less · mgpu edit 42 gpu_mem=8G memory=1536M time_limit=90m\n");
}

TEST(a_job_that_does_not_exist_yet_has_no_number)
{
    check(NULL,
        "{\"job\":null,\"starts_now\":false,\"reasons\":[{\"code\":\"begin_time\",\"text\":\"begins "
        "later\"}],"
        "\"eta\":\"2026-11-22T14:05:00.000Z\",\"eta_basis\":\"its begin time\","
        "\"eta_latest\":\"2026-11-22T14:05:00.000Z\",\"eta_latest_basis\":\"the same\","
        "\"change\":{\"text\":\"-g 1 fits\",\"edit\":{\"gpus\":1}}}",
        "It would wait. One thing blocks it:\n"
        "  1. Begin time    begins later\n"
        "Starts about Sun 14:05 (its begin time); at the latest Sun 14:05 (the same).\n"
        "To start now: -g 1 fits\n");
    check(NULL, "{\"job\":null,\"starts_now\":true,\"reasons\":[]}", "It would start now.\n");
}

TEST(why_of_a_job_that_does_not_wait_says_so)
{
    check(
        "{\"id\":7,\"array_job\":4,\"array_index\":3,\"name\":\"x\",\"state\":\"running\",\"node\":\"gpu1\","
        "\"granted\":[{\"index\":2}]}",
        "{}", "Job 4.3 (x) is not waiting: it is running on gpu1:2.\n");
    check("{\"id\":7,\"name\":\"x\",\"state\":\"failed\",\"ended_by\":\"time_limit\",\"time_limit_s\":60}",
        "{}", "Job 7 (x) has ended: reached its time limit of 1m00s.\n");
}

TEST(an_answer_without_members_is_no_crash)
{
    check("{\"state\":\"queued\"}", "{}",
        "Job - (-) has waited 0ms (no GPU requested).\nIts start cannot be predicted.\n");
}

TEST(a_request_is_told_in_words)
{
    _cleanup_json_ json_t *job = json_pack("{s:i, s:i, s:s, s:f, s:I, s:i}", "gpus", 1, "gpu_share", 500,
        "gpu_allow", "0-3", "cpus", 2.5, "memory", (json_int_t)1 << 34, "nodes", 2);
    _cleanup_free_ char *text = why_request(job);
    assert_string_equal(text, "0.5 of a GPU, only of 0-3, 2 nodes, 2.5 CPUs, 16 GiB of host memory");
}
