/* SPDX-License-Identifier: MIT */
/* The records in an attempt's spool directory: whole, and readable by an older or newer program. */
#include <string.h>

#include "base/memory.h"
#include "job/launch.h"
#include "job/state.h"
#include "unit_test.h"

TEST(a_launch_spec_comes_back_from_its_bytes)
{
    struct launch_spec spec = { .id.job = 42,
        .id.attempt = 2,
        .token = UINT64_MAX,
        .uid = 1000,
        .gid = 1001,
        .umask = 077,
        .cwd = xstrdup("/home/ana"),
        .output = xstrdup("out.log"),
        .is_output_default = true,
        .nofile_soft = 1024 };
    spec.groups.items = xcalloc(2, sizeof(struct group_id));
    spec.groups.count = 2;
    ((struct group_id *)spec.groups.items)[1].gid = 44;
    struct job_ask *ask = xcalloc(1, sizeof(*ask));
    *ask = (struct job_ask){ .idle_ok = true, .grace_ms = 7000 };
    spec.ask = (struct record_list){ ask, 1 };
    strings_add(&spec.command, "true");
    strings_add(&spec.env, "A=b");
    strings_add(&spec.gpu_env, "CUDA_VISIBLE_DEVICES=2,0");
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&launch_spec_record, &spec, &bytes);
    record_clear(&launch_spec_record, &spec);
    struct launch_spec back;
    assert_int_equal(record_decode(&launch_spec_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_int_equal(back.id.job, 42);
    assert_true(back.token == UINT64_MAX);
    assert_true(back.is_output_default);
    assert_int_equal(back.umask, 077);
    assert_int_equal(back.groups.count, 2);
    assert_int_equal(((const struct group_id *)back.groups.items)[1].gid, 44);
    assert_string_equal(back.gpu_env.items[0], "CUDA_VISIBLE_DEVICES=2,0");
    assert_null(back.setup);
    assert_true(launch_ask(&back)->idle_ok);
    assert_int_equal(launch_ask(&back)->grace_ms, 7000);
    record_clear(&launch_spec_record, &back);
    assert_int_equal(launch_ask(&back)->grace_ms, 0);
}

TEST(an_exit_record_comes_back_from_its_bytes)
{
    char path[] = "/home/ana/42.log", text[] = "chdir: Permission denied";
    const struct launch_exit ended = { .id.job = 42,
        .id.attempt = 1,
        .token = 7,
        .end = END_START_FAILED,
        .exit_code = 126,
        .run_ms = 5,
        .log_path = path,
        .text = text };
    struct launch_exit back;
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&launch_exit_record, &ended, &bytes);
    assert_int_equal(record_decode(&launch_exit_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_int_equal(back.end, END_START_FAILED);
    assert_int_equal(back.exit_code, 126);
    assert_int_equal(back.is_executed, 0);
    assert_string_equal(back.text, "chdir: Permission denied");
    record_clear(&launch_exit_record, &back);
}

TEST(the_time_since_an_end_needs_its_boot_clock)
{
    struct launch_exit ended = { .ended_wall_ms = 900 };
    assert_int_equal(launch_exit_ago_ms(&ended, 1000), 0);
    ended.ended_boot_ms = 900;
    assert_int_equal(launch_exit_ago_ms(&ended, 1000), 100);
    assert_int_equal(launch_exit_ago_ms(&ended, 900), 1);
    assert_int_equal(launch_exit_ago_ms(&ended, 800), 0); // that was another boot
    ended.ended_boot_ms = INT64_MIN;
    assert_int_equal(launch_exit_ago_ms(&ended, 1000), 0);
}

TEST(a_started_record_is_not_taken_for_an_exit_record)
{
    const struct launch_started started = { .id.job = 42, .shepherd_pid = 100, .init_pid = 101 };
    struct launch_exit ended;
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&launch_started_record, &started, &bytes);
    assert_true(record_decode(&launch_exit_record, bytes.bytes, bytes.length, &ended, NULL) < 0);
}

TEST(all_records_name_the_attempt_by_the_same_tags)
{
    const struct record_type *types[] = { &launch_spec_record, &launch_started_record, &launch_exit_record };
    static const char *const names[] = { "job", "attempt", "step", "rank", "token" };
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(types[t]->fields[i].tag, i + 1);
            assert_string_equal(types[t]->fields[i].name, names[i]);
        }
}

TEST(no_tag_is_used_twice)
{
    const struct record_type *types[] = { &launch_spec_record, &launch_started_record, &launch_exit_record };
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < types[t]->n_fields; i++)
            for (size_t k = 0; k < i; k++)
                assert_int_not_equal(types[t]->fields[i].tag, types[t]->fields[k].tag);
}

TEST(only_variables_that_are_there_are_told_the_port)
{
    _cleanup_strings_ struct strings variables = { 0 };
    strings_set_env(&variables, "MASTER_PORT", "29500");
    launch_set_port(&variables, 29777);
    assert_string_equal(strings_get_env(&variables, "MASTER_PORT"), "29777");
    assert_null(strings_get_env(&variables, "PET_MASTER_PORT"));
}

TEST(the_start_of_an_older_record_is_estimated)
{
    const struct launch_started now = { .wall_ms = 9000, .boot_ms = 70 }, old = { .wall_ms = 9000 };
    assert_true(launch_started_boot_ms(&now, 500, 20000) == 70);
    assert_true(launch_started_boot_ms(&old, 500, 9100) == 400);
    assert_true(launch_started_boot_ms(&old, 500, 8000) == 500); // a clock that was set back
}
