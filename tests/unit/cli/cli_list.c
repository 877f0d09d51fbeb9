/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/gpu_columns.h"
#include "cli/show/job_columns.h"
#include "unit_test.h"

static const struct list_kind kind = {
    .member = "jobs",
    .columns = job_columns,
    .normal = "id,name,state,where,why",
    .wide = "id",
};

static const char jobs_text[] =
    "{\"schema\":\"mgpu/v1\",\"jobs\":["
    "{\"id\":9,\"name\":\"a,\\\"b\\\"\",\"state\":\"running\",\"node\":\"gpu1\",\"command\":\"x\\u001b[2J\","
    "\"granted\":[{\"index\":0},{\"index\":1},{\"index\":2},{\"index\":5}],\"run_seconds\":1.5},"
    "{\"id\":10,\"name\":\"b\",\"state\":\"queued\",\"position\":2,\"reason\":\"priority\",\"wait_seconds\":"
    "65},"
    "{\"id\":11,\"name\":\"c\",\"state\":\"failed\",\"ended_by\":\"exit\",\"exit_code\":1,\"node\":\"gpu1\","
    "\"granted\":[{\"index\":3},{\"index\":1},{\"index\":2}]}]}";

static int print(const struct call *call, char **ret_text, struct error *err)
{
    struct screen screen = { 0 };
    size_t size = 0;
    _cleanup_json_ json_t *answer = json_loads(jobs_text, 0, NULL);
    FILE *out = open_memstream(ret_text, &size);
    int r = list_print(call, &kind, &screen, answer, out, err);
    (void)fclose(out);
    return r;
}

static void check(const struct call *call, const char *expected)
{
    _cleanup_free_ char *text = NULL;
    assert_int_equal(print(call, &text, NULL), 0);
    assert_string_equal(text, expected);
}

/* What explains a job is kept before what the other columns tell as well. */
TEST(a_narrow_screen_lacks_the_time_before_the_reason)
{
    static const struct list_kind timed = {
        .member = "jobs", .columns = job_columns, .normal = "id,name,state,time,why"
    };
    static const struct {
        size_t width;
        const char *first;
    } expected[] = {
        { 100, "ID  NAME   STATE      TIME        WHY / COMMAND\n" },
        { 60, "ID  NAME   STATE      TIME   WHY / COMMAND\n" },
        { 42, "ID  NAME   STATE      TIME   WHY / COMMAND\n" },
        { 36, "ID  NAME   STATE      WHY / COMMAND\n" },
        { 24, "ID  NAME   STATE\n" },
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct call call = { 0 };
        struct screen screen = { .width = expected[i].width };
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        _cleanup_json_ json_t *answer = json_loads(jobs_text, 0, NULL);
        FILE *out = open_memstream(&text, &size);
        assert_int_equal(list_print(&call, &timed, &screen, answer, out, NULL), 0);
        (void)fclose(out);
        assert_memory_equal(text, expected[i].first, strlen(expected[i].first));
    }
}

TEST(a_narrow_screen_keeps_the_state_of_gpus)
{
    static const char gpus[] = "{\"gpus\":[{\"node\":\"gpu1\",\"index\":0,\"model\":\"NVIDIA "
                               "H100\",\"state\":\"drained\",\"utilization\":0.5,"
                               "\"memory_used_bytes\":1073741824,\"memory_bytes\":85899345920,\"temperature_"
                               "c\":40,\"power_w\":100}]}";
    static const struct {
        size_t width;
        const char *first;
    } expected[] = {
        { 100, "NODE  GPU  MODEL        JOB  USER  UTIL      MEM GiB  TEMP    W  IDLE  STATE\n" },
        { 70, "NODE  GPU  MODEL        JOB  USER  UTIL   MEM GiB  TEMP  IDLE  STATE\n" },
        { 60, "NODE  GPU  MODEL        JOB  USER  UTIL   MEM GiB  STATE\n" },
        { 40, "NODE  GPU  JOB  USER  UTIL  STATE\n" },
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct call call = { 0 };
        struct screen screen = { .width = expected[i].width };
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        _cleanup_json_ json_t *answer = json_loads(gpus, 0, NULL);
        FILE *out = open_memstream(&text, &size);
        assert_int_equal(list_print(&call, &gpu_list, &screen, answer, out, NULL), 0);
        (void)fclose(out);
        assert_memory_equal(text, expected[i].first, strlen(expected[i].first));
    }
}

TEST(a_table_tells_each_state_its_own_way)
{
    struct call call = { 0 };
    check(&call, "ID  NAME   STATE      WHERE       WHY / COMMAND\n"
                 " 9  a,\"b\"  running    gpu1:0-2,5  x\\x1b[2J\n"
                 "10  b      queued #2  -           priority\n"
                 "11  c      failed     gpu1:3,1,2  exit 1\n");
}

/* Rows of jobs that are held, arrays and their elements. */
TEST(arrays_and_held_jobs_have_their_own_look)
{
    static const char text[] =
        "{\"jobs\":[{\"id\":43,\"name\":\"sweep\",\"state\":\"queued\",\"hold\":\"user\",\"position\":4,"
        "\"gpus\":2,\"array_left\":\"3-99\",\"reason\":\"held_user\",\"reason_text\":\"held by cy\"},"
        "{\"id\":45,\"name\":\"sweep\",\"state\":\"running\",\"array_job\":43,\"array_index\":2,\"gpus\":1,"
        "\"gpu_share\":500,\"time_limit_s\":60,\"run_seconds\":20,\"started_at\":\"2026-11-21T12:00:00."
        "000Z\","
        "\"command\":\"./x\"},"
        "{\"id\":46,\"name\":\"b\",\"state\":\"queued\",\"position\":1,\"gpus\":1,"
        "\"eta\":\"2020-01-02T14:05:00.000Z\",\"reason_text\":\"no GPU is free\"}]}";
    const struct call call = { .times = TIME_ZULU, .list = { .output = "id,name,state,gpus,left,why" } };
    const struct screen screen = { 0 };
    _cleanup_json_ json_t *answer = json_loads(text, 0, NULL);
    _cleanup_free_ char *shown = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&shown, &size);
    assert_int_equal(list_print(&call, &kind, &screen, answer, out, NULL), 0);
    (void)fclose(out);
    assert_string_equal(shown, "  ID  NAME          STATE      GPUS  LEFT               WHY / COMMAND\n"
                               "  43  sweep [3-99]  held       97x2  -                  held by cy\n"
                               "43.2  sweep         running     0.5  40s                ./x\n"
                               "  46  b             queued #1     1  ~2020-01-02 14:05  no GPU is free\n");
}

TEST(columns_come_in_the_order_asked)
{
    struct call call = { .list = { .output = "time,id", .is_headless = true } };
    check(&call, "1s           9\n"
                 "wait 1m05s  10\n"
                 "-           11\n");
}

TEST(rows_sort_by_number_and_by_text)
{
    struct call call = { .list = { .output = "id", .is_headless = true, .sort = "-id" } };
    check(&call, "11\n10\n 9\n");
    call.list.sort = "-state,id";
    check(&call, " 9\n10\n11\n");
}

TEST(csv_has_all_columns_and_quotes)
{
    struct call call = { .list = { .output = "csv" } };
    _cleanup_free_ char *text = NULL;
    assert_int_equal(print(&call, &text, NULL), 0);
    assert_non_null(strstr(text, "id,user,name,state,gpus,"));
    assert_non_null(strstr(text, "\n9,,\"a,\"\"b\"\"\",running,"));
}

TEST(json_is_the_servers_own)
{
    struct call call = { .is_json = true };
    _cleanup_free_ char *text = NULL;
    assert_int_equal(print(&call, &text, NULL), 0);
    _cleanup_json_ json_t *printed = json_loads(text, 0, NULL), *given = json_loads(jobs_text, 0, NULL);
    assert_true(json_equal(printed, given));
}

TEST(json_lines_have_one_job_each)
{
    struct call call = { .list = { .output = "jsonl" } };
    _cleanup_free_ char *text = NULL;
    assert_int_equal(print(&call, &text, NULL), 0);
    size_t lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    assert_int_equal(lines, 3);
    assert_memory_equal(text, "{\"id\":9,", 8);
}

TEST(an_unknown_column_gets_a_suggestion)
{
    struct list_choice choice = { .output = "id,gpu" }, sort = { .sort = "-nmae" },
                       good = { .output = "csv" };
    struct error err = { 0 };
    assert_int_equal(list_check(&choice, &kind, &err), -EINVAL);
    assert_string_equal(err.message, "-o: no column 'gpu'. Did you mean 'gpus'?");
    assert_int_equal(list_check(&sort, &kind, &err), -EINVAL);
    assert_int_equal(list_check(&good, &kind, &err), 0);
}

TEST(columns_are_few_enough)
{
    size_t count = 0;
    for (const struct list_column *column = job_columns; column->name != NULL; column++)
        count++;
    assert_in_range(count, 1, LIST_COLUMNS_MAX);
}

TEST(the_status_line_names_every_gpu)
{
    _cleanup_json_ json_t *gpus = json_loads(
        "[{\"index\":0,\"utilization\":0.97,\"jobs\":[{}],\"state\":\"used\"},{\"index\":1,\"jobs\":[],"
        "\"state\":\"free\"},{\"index\":2,\"utilization\":null,\"jobs\":[{}],\"state\":\"used\"},"
        "{\"index\":7,\"jobs\":[],\"state\":\"lost\"}]",
        0, NULL);
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    gpu_print_line(gpus, out);
    (void)fclose(out);
    assert_string_equal(text, "0:97% 1:- 2:+ 7:x\n");
}

TEST(a_job_on_gpus_of_others_is_warned_of)
{
    _cleanup_json_ json_t *jobs = json_loads(
        "{\"jobs\":[{\"id\":1,\"state\":\"running\",\"command\":\"x\",\"usage\":{\"stray_gpus\":\"3\"}},"
        "{\"id\":2,\"state\":\"running\",\"command\":\"y\",\"usage\":{\"stray_gpus\":null}},"
        "{\"id\":3,\"state\":\"done\",\"ended_by\":\"exit\",\"exit_code\":0,\"usage\":{\"stray_gpus\":\"3\"}}"
        "]}",
        0, NULL);
    struct call call = { .list.output = "id,why" };
    struct screen screen = { 0 };
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(list_print(&call, &kind, &screen, jobs, out, NULL), 0);
    (void)fclose(out);
    assert_non_null(strstr(text, "1  uses GPU 3, which is not allocated to it\n"));
    assert_non_null(strstr(text, "2  y\n"));
    assert_non_null(strstr(text, "3  exit 0\n"));
}

TEST(processes_are_told_that_do_not_belong_on_the_gpu)
{
    _cleanup_json_ json_t *gpus =
        json_loads("[{\"node\":\"box\",\"index\":0,\"jobs\":[{\"id\":42}],\"processes\":["
                   "{\"pid\":7,\"command\":\"own\",\"user\":\"cy\",\"job\":42},"
                   "{\"pid\":8,\"command\":\"train\",\"user\":\"cy\",\"job\":43,\"memory_bytes\":1073741824},"
                   "{\"pid\":9,\"command\":\"blender\",\"user\":\"di\",\"job\":null}]}]",
            0, NULL);
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    gpu_print_external(gpus, out);
    (void)fclose(out);
    assert_string_equal(
        text, "used by external processes: GPU box:0: 8 train (cy) 1 GiB of job 43, 9 blender (di)\n");
}

TEST(a_list_without_wide_columns_shows_its_normal_ones)
{
    static const struct list_kind narrow = { .member = "jobs", .columns = job_columns, .normal = "id,name" };
    struct call call = { .list.output = "wide" };
    struct screen screen = { 0 };
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    _cleanup_json_ json_t *answer = json_loads(jobs_text, 0, NULL);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(list_print(&call, &narrow, &screen, answer, out, NULL), 0);
    (void)fclose(out);
    assert_string_equal(text, "ID  NAME\n 9  a,\"b\"\n10  b\n11  c\n");
}
