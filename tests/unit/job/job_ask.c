/* SPDX-License-Identifier: MIT */
/* Requests of jobs: each limit, each contradiction, and the lists. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "job/ask.h"
#include "unit_test.h"

/* The texts of these requests are literals: nothing here is cleared. */
#define TEXT(text) ((char *)(uintptr_t)(text))

TEST(what_makes_sense_is_accepted)
{
    static const struct job_ask asks[] = {
        { .gpus = 1 },
        { .gpus = 0 },
        { .gpus = ASK_GPUS_MAX },
        { .gpus = 1, .gpu_share = 1 },
        { .gpus = 1, .gpu_share = 999, .gpu_mem = 1 },
        { .gpus = 2, .gpu_mem = 8ULL << 30 },
        { .gpus = 3, .gpu_model = TEXT("a100|H100 PCIe"), .gpu_allow = TEXT("0-3,255") },
        { .gpus = 2, .gpu_ids = TEXT("3,0") },
        { .gpus = 3, .gpu_ids = TEXT("n1:0,1;n2:0") },
        { .gpus = 1, .gpu_share = 500, .gpu_ids = TEXT("3") },
        { .gpus = 8, .nodes = 2, .gpus_per_node = 4 },
        { .gpus = 8, .gpus_per_node = 4 },
        { .gpus = 5, .nodes = 2 },
        { .gpus = 0, .nodes = 1 },
        { .gpus = 1, .cpu_milli = 2500, .memory = 1ULL << 40 },
        { .gpus = 1, .memory = ASK_MEMORY_MIN },
        { .gpus = 1, .priority = ASK_PRIORITY_MAX },
        { .gpus = 1, .time_limit_ms = 1 },
        { .gpus = 1, .begin_ms = 1, .deadline_ms = 2 },
        { .gpus = 1, .deadline_ms = ASK_YEAR_9999_MS, .preemptible = true },
        { .gpus = 1, .after = TEXT("41:ok,42:any,43:fail,44") },
        { .gpus = 1, .array = TEXT("0-99:2%8"), .gpu_ids = TEXT("3") },
    };
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        struct error err = { 0 };
        if (job_ask_validate(&asks[i], &err) != 0)
            fail_msg("request %zu: %s", i, err.message);
    }
}

TEST(every_limit_is_told_with_its_value)
{
    static const struct {
        struct job_ask ask;
        int code;
        const char *word;
    } rows[] = {
        { { .gpus = 1025 }, -ERANGE, "gpus: 1025" },
        { { .gpus = 1, .gpu_share = 1000 }, -ERANGE, "gpu_share: 1000" },
        { { .priority = 1001 }, -ERANGE, "priority: 1001" },
        { { .priority = -1001 }, -ERANGE, "priority: -1001" },
        { { .gpus = 1, .nodes = 1025 }, -ERANGE, "nodes: 1025" },
        { { .gpus = 1, .gpus_per_node = 1025 }, -ERANGE, "gpus_per_node: 1025" },
        { { .cpu_milli = 65537000 }, -ERANGE, "cpus: 65537" },
        { { .memory = ASK_MEMORY_MIN - 1 }, -ERANGE, "below the minimum of 16 MiB" },
        { { .time_limit_ms = -1 }, -ERANGE, "time_limit" },
        { { .begin_ms = -1 }, -ERANGE, "begin" },
        { { .begin_ms = ASK_YEAR_9999_MS + 1 }, -ERANGE, "begin" },
        { { .deadline_ms = -1 }, -ERANGE, "deadline" },
        { { .deadline_ms = ASK_YEAR_9999_MS + 1 }, -ERANGE, "deadline" },
        { { .gpus = 1, .gpu_ids = TEXT("") }, -EINVAL, "gpu_ids is empty" },
        { { .gpus = 1, .gpu_model = TEXT("") }, -EINVAL, "gpu_model is empty" },
        { { .gpus = 1, .gpu_allow = TEXT("") }, -EINVAL, "gpu_allow is empty" },
        { { .after = TEXT("") }, -EINVAL, "after is empty" },
        { { .array = TEXT("") }, -EINVAL, "array is empty" },
        { { .gpus = 1, .gpu_model = TEXT("a\tb") }, -EINVAL, "control character" },
        { { .exclude = TEXT("n[1-2]") }, -EINVAL, "exclude: 'n[1-2]' is not a list of nodes" },
        { { .nodelist = TEXT("n1,n2]") }, -EINVAL, "nodelist: 'n1,n2]' is not a list of nodes" },
        { { .gpus = 1, .gpu_ids = TEXT("256") }, -ERANGE, "256" },
        { { .gpus = 1, .gpu_allow = TEXT("256") }, -ERANGE, "256" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = { 0 };
        assert_int_equal(job_ask_validate(&rows[i].ask, &err), rows[i].code);
        if (strstr(err.message, rows[i].word) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    }
}

TEST(every_contradiction_is_told_with_a_hint)
{
    static const struct {
        struct job_ask ask;
        const char *word;
    } rows[] = {
        { { .gpu_mem = 1 }, "gpu_mem requires a GPU" },
        { { .gpu_model = TEXT("h200") }, "gpu_model requires a GPU" },
        { { .gpu_allow = TEXT("0") }, "gpu_allow requires a GPU" },
        { { .gpus_per_node = 1 }, "gpus_per_node requires a GPU" },
        { { .idle_timeout_ms = 60000 }, "idle_timeout requires a GPU" },
        { { .idle_ok = true }, "idle_ok requires a GPU" },
        { { .gpus = 1, .idle_ok = true, .idle_timeout_ms = 60000 }, "idle_ok and idle_timeout" },
        { { .gpus = 1, .no_park = true, .park_on_timeout = true }, "no_park and park_on_timeout" },
        { { .gpus = 1, .no_park = true, .park_on_preempt = true }, "no_park and park_on_preempt" },
        { { .gpus = 1, .no_park = true, .park_anywhere = true }, "no_park and park_anywhere" },
        { { .gpu_share = 500 }, "gpu_share requires a GPU" },
        { { .gpus = 2, .gpu_share = 500 }, "several GPUs" },
        { { .gpus = 1, .gpu_ids = TEXT("0"), .gpu_model = TEXT("h200") }, "gpu_ids and gpu_model" },
        { { .gpus = 1, .gpu_ids = TEXT("0"), .gpu_allow = TEXT("0") }, "gpu_ids and gpu_allow" },
        { { .gpus = 1, .gpu_ids = TEXT("0"), .nodes = 1 }, "gpu_ids and nodes" },
        { { .gpus = 1, .gpu_ids = TEXT("0"), .gpus_per_node = 1 }, "gpu_ids and gpus_per_node" },
        { { .gpus = 1, .nodes = 2 }, "more nodes than GPUs" },
        { { .gpus = 8, .nodes = 2, .gpus_per_node = 3 }, "nodes times gpus_per_node" },
        { { .gpus = 8, .gpus_per_node = 3 }, "not a multiple" },
        { { .gpus = 1, .adopted_start = 5 }, "require adopted_pid" },
        { { .gpus = 1, .adopted_boot = TEXT("b") }, "require adopted_pid" },
        { { .adopted_pid = 5 }, "requires at least one GPU" },
        { { .gpus = 1, .adopted_pid = 5, .array = TEXT("0-3") }, "cannot be an array" },
        { { .gpus = 1, .adopted_pid = 5, .preemptible = true }, "cannot be preempted" },
        { { .gpus = 2, .adopted_pid = 5, .nodes = 2 }, "runs on one node" },
        { { .begin_ms = 5, .deadline_ms = 5 }, "deadline is not after begin" },
        { { .begin_ms = 5, .deadline_ms = 4 }, "deadline is not after begin" },
        { { .gpus = 1, .gpu_model = TEXT("a100|") }, "empty name" },
        { { .gpus = 1, .gpu_model = TEXT("|a100") }, "empty name" },
        { { .gpus = 1, .gpu_model = TEXT("a||b") }, "empty name" },
        { { .gpus = 1, .gpu_allow = TEXT("x") }, "gpu_allow: 'x'" },
        { { .array = TEXT("3x") }, "array: '3x'" },
        { { .array = TEXT("3,3") }, "comes after" },
        { { .after = TEXT("41:maybe") }, "'maybe'" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = { 0 };
        assert_int_equal(job_ask_validate(&rows[i].ask, &err), -EINVAL);
        if (strstr(err.message, rows[i].word) == NULL || err.hint[0] == '\0')
            fail_msg("row %zu: %s (%s)", i, err.message, err.hint);
    }
}

TEST(as_many_gpus_are_named_as_asked_for)
{
    const struct job_ask ask = { .gpus = 2, .gpu_ids = TEXT("0,2-3") };
    struct error err = { 0 };
    assert_int_equal(job_ask_validate(&ask, &err), -EINVAL);
    assert_string_equal(err.message, "gpu_ids lists 3 GPUs, but gpus is 2");
}

TEST(gpus_are_read_in_the_order_written)
{
    struct ask_gpu *gpus = NULL;
    size_t count = 0;
    assert_int_equal(parse_gpu_ids("3,0-1", &gpus, &count, NULL), 0);
    assert_int_equal(count, 3);
    assert_int_equal(gpus[0].index, 3);
    assert_null(gpus[0].node);
    assert_int_equal(gpus[2].index, 1);
    ask_gpus_free(gpus, count);
    assert_int_equal(parse_gpu_ids("node2:0;node1:0,7", &gpus, &count, NULL), 0);
    assert_int_equal(count, 3);
    assert_string_equal(gpus[0].node, "node2");
    assert_string_equal(gpus[2].node, "node1");
    assert_int_equal(gpus[2].index, 7);
    ask_gpus_free(gpus, count);
}

TEST(lists_of_gpus_that_make_no_sense_are_refused)
{
    static const struct {
        const char *text, *word;
    } rows[] = {
        { "n1:0;1", "'1' has no node" },
        { "0;1;n1:2", "'0' has no node" },
        { ":0", "':0' is not a list" },
        { "n1:", "not a list of ids" },
        { "n1:0;", "has no node" },
        { "3,3", "twice" },
        { "n1:0;n1:0", "twice" },
        { "1;1", "twice" },
        { "n1:0:1", "not a list of ids" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ask_gpu *gpus = NULL;
        struct error err = { 0 };
        size_t count = 0;
        assert_int_equal(parse_gpu_ids(rows[i].text, &gpus, &count, &err), -EINVAL);
        if (strstr(err.message, rows[i].word) == NULL)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_null(gpus);
    }
}

TEST(a_node_has_a_name_of_bounded_length)
{
    char text[ASK_NODE_NAME_MAX + 8];
    struct ask_gpu *gpus = NULL;
    size_t count = 0;
    memset(text, 'n', sizeof(text));
    memcpy(text + ASK_NODE_NAME_MAX, ":0", 3);
    assert_int_equal(parse_gpu_ids(text, &gpus, &count, NULL), 0);
    ask_gpus_free(gpus, count);
    memset(text, 'n', sizeof(text));
    memcpy(text + ASK_NODE_NAME_MAX + 1, ":0", 3);
    assert_int_equal(parse_gpu_ids(text, &gpus, &count, NULL), -E2BIG);
}

TEST(a_job_is_waited_for_to_succeed_unless_requested_otherwise)
{
    _cleanup_free_ struct ask_after *after = NULL;
    size_t count = 0;
    assert_int_equal(parse_after("41,42:any,43:fail,9223372036854775807:ok", &after, &count, NULL), 0);
    assert_int_equal(count, 4);
    assert_int_equal(after[0].job, 41);
    assert_int_equal(after[0].kind, AFTER_OK);
    assert_int_equal(after[1].kind, AFTER_ANY);
    assert_int_equal(after[2].kind, AFTER_FAIL);
    assert_true(after[3].job == INT64_MAX);
    assert_string_equal(after_kind_name(AFTER_FAIL), "fail");
    assert_false(after[0].is_any);
}

TEST(one_of_several_jobs_may_suffice)
{
    _cleanup_free_ struct ask_after *after = NULL;
    size_t count = 0;
    assert_int_equal(parse_after("41:start?42:fail", &after, &count, NULL), 0);
    assert_int_equal(count, 2);
    assert_int_equal(after[0].kind, AFTER_START);
    assert_int_equal(after[1].kind, AFTER_FAIL);
    assert_true(after[0].is_any && after[1].is_any);
}

TEST(a_start_may_be_waited_for_with_a_delay)
{
    _cleanup_free_ struct ask_after *after = NULL;
    size_t count = 0;
    assert_int_equal(parse_after("41:start+10m,42:corr,43:start+30", &after, &count, NULL), 0);
    assert_int_equal(after[0].kind, AFTER_START);
    assert_int_equal(after[0].delay_ms, 600000);
    assert_int_equal(after[1].kind, AFTER_CORR);
    assert_int_equal(after[1].delay_ms, 0);
    assert_int_equal(after[2].delay_ms, 30000);
    assert_true(after_comes_true(AFTER_CORR, true) && !after_comes_true(AFTER_CORR, false));
}

TEST(a_singleton_names_no_job)
{
    _cleanup_free_ struct ask_after *after = NULL;
    size_t count = 1;
    assert_int_equal(parse_after("singleton", &after, &count, NULL), 0);
    assert_int_equal(count, 0);
    assert_int_equal(parse_after("41,singleton,42:any", &after, &count, NULL), 0);
    assert_int_equal(count, 2);
    assert_int_equal(after[1].job, 42);
}

TEST(lists_of_jobs_that_make_no_sense_are_refused)
{
    static const char *const texts[] = { "", "0", "-1", "x", "41:", "41:OK", "41,", ",41", "41,41",
        "41:ok,41:any", "41 ,42", "9223372036854775808", "41?", "?41", "41?41", "41,42?43", "singleton?41",
        "singleton,", "singletons", "41:ok+10m", "41:start+", "41:start+x", "41:start+-1", "41:+10" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct ask_after *after = NULL;
        struct error err = { 0 };
        size_t count = 0;
        assert_true(parse_after(texts[i], &after, &count, &err) < 0);
        assert_true(err.message[0] != '\0');
        assert_null(after);
    }
}

TEST(a_job_waits_for_a_bounded_number_of_others)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (unsigned i = 1; i <= ASK_AFTER_MAX; i++)
        buffer_printf(&text, "%s%u:fail", i > 1 ? "," : "", i);
    struct job_ask ask = { .after = buffer_text(&text) };
    assert_int_equal(job_ask_validate(&ask, NULL), 0);
    buffer_printf(&text, ",9000");
    ask.after = buffer_text(&text);
    struct error err = { 0 };
    assert_int_equal(job_ask_validate(&ask, &err), -E2BIG);
    assert_non_null(strstr(err.message, "1000 jobs"));
}

TEST(a_job_that_is_listed_twice_is_named_wherever_it_stands)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (unsigned i = ASK_AFTER_MAX - 1; i >= 1; i--)
        buffer_printf(&text, "%u:any,", i);
    buffer_printf(&text, "500");
    struct job_ask ask = { .after = buffer_text(&text) };
    struct error err = { 0 };
    assert_int_equal(job_ask_validate(&ask, &err), -EINVAL);
    assert_string_equal(err.message, "after: job 500 is listed twice");
}

TEST(a_copy_is_equal_until_one_field_differs)
{
    struct job_ask ask, copy;
    job_ask_init(&ask);
    assert_int_equal(ask.gpus, 1);
    ask.after = xstrdup("41");
    ask.begin_ms = 7;
    job_ask_copy(&copy, &ask);
    assert_true(copy.after != ask.after);
    assert_true(job_ask_equal(&ask, &copy));
    copy.preemptible = true;
    assert_false(job_ask_equal(&ask, &copy));
    copy.preemptible = false;
    copy.cancel_if_never = true;
    assert_false(job_ask_equal(&ask, &copy));
    copy.cancel_if_never = false;
    copy.after[0] = '5';
    assert_false(job_ask_equal(&ask, &copy));
    job_ask_clear(&ask);
    job_ask_clear(&copy);
}
