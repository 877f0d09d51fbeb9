/* SPDX-License-Identifier: MIT */
/* Events as bytes, and the lists of GPUs they carry. */
#include <string.h>

#include "base/memory.h"
#include "job/event.h"
#include "unit_test.h"

TEST(an_event_comes_back_from_its_bytes)
{
    struct job_event event = { .seq = 9,
        .job = 42,
        .attempt = 1,
        .type = EVENT_ENDED,
        .wall_ms = 1795242600007,
        .end = END_SIGNAL,
        .exit_code = 137,
        .signal = 9,
        .max_rss = 1ULL << 40,
        .log_path = xstrdup("/home/ana/42.log"),
        .text = xstrdup("killed") };
    gpu_grants_add(&event.gpus, 2, "GPU-2", 0, 0);
    gpu_grants_add(&event.gpus, 0, "GPU-0", 3, 8ULL << 30);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&job_event_record, &event, &bytes);
    struct job_event back;
    assert_int_equal(record_decode(&job_event_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_int_equal(back.seq, 9);
    assert_int_equal(back.job, 42);
    assert_int_equal(back.exit_code, 137);
    assert_true(back.max_rss == 1ULL << 40);
    assert_string_equal(back.text, "killed");
    const struct gpu_grant *grants = back.gpus.items;
    assert_int_equal(back.gpus.count, 2);
    assert_int_equal(grants[0].index, 2);
    assert_string_equal(grants[1].uuid, "GPU-0");
    assert_int_equal(grants[1].slot, 3);
    assert_true(grants[1].memory == 8ULL << 30);
    job_event_clear(&back);
    job_event_clear(&event);
    assert_null(event.text);
    assert_int_equal(event.gpus.count, 0);
}

TEST(tags_and_types_are_unique)
{
    for (size_t i = 0; i < job_event_record.n_fields; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(job_event_record.fields[i].tag, job_event_record.fields[k].tag);
    assert_int_not_equal(job_event_record.id, gpu_grant_record.id);
}

TEST(grants_keep_their_order_and_own_their_names)
{
    struct record_list grants = { 0 }, copy;
    char uuid[] = "GPU-a";
    gpu_grants_add(&grants, 5, uuid, 0, 0);
    gpu_grants_add(&grants, 1, "GPU-b", 1, 1024);
    uuid[4] = 'x';
    gpu_grants_copy(&copy, &grants);
    gpu_grants_clear(&grants);
    assert_int_equal(grants.count, 0);
    assert_null(grants.items);
    const struct gpu_grant *items = copy.items;
    assert_int_equal(copy.count, 2);
    assert_int_equal(items[0].index, 5);
    assert_string_equal(items[0].uuid, "GPU-a");
    assert_string_equal(items[1].uuid, "GPU-b");
    gpu_grants_clear(&copy);
}

TEST(a_text_over_its_limit_does_not_come_back)
{
    char text[EVENT_TEXT_MAX + 2];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct job_event event = { .text = text }, back;
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&job_event_record, &event, &bytes);
    assert_true(record_decode(&job_event_record, bytes.bytes, bytes.length, &back, NULL) < 0);
}
