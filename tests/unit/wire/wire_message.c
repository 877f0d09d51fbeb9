/* SPDX-License-Identifier: MIT */
/*
 * What one side may write, the other can read. For every field of every message: at its limit it comes back,
 * with one more it is refused, and then it is that field alone which is missing from what can still be taken.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/cluster_change.h"
#include "wire/limits.h"
#include "wire/message.h"

#define IDS      1000U
#define ITEM_MAX 70000U // items of a list that are tried: more than any limit

/* Fills one field with as much as `size` says: bytes of a text, items of a list. */
static void fill_field(const struct record_field *field, void *member, size_t size)
{
    switch (field->kind) {
    case RECORD_STRING: {
        char *text = xcalloc(1, size + 1);
        memset(text, 'x', size);
        *(char **)member = text;
        return;
    }
    case RECORD_STRINGS:
    case RECORD_ENV: { // two of them; each has a NUL that counts
        _cleanup_free_ char *text = xcalloc(1, size + 1);
        memset(text, 'x', size - 3);
        text[1] = '=';
        strings_add(member, text);
        strings_add(member, "y");
        return;
    }
    case RECORD_LIST:
        assert_true(size < ITEM_MAX);
        *(struct record_list *)member = (struct record_list){ xcalloc(size, field->sub->size), size };
        return;
    default: return;
    }
}

static bool has_limit(const struct record_field *field)
{
    return field->kind == RECORD_STRING || field->kind == RECORD_STRINGS || field->kind == RECORD_ENV ||
           field->kind == RECORD_LIST;
}

/* What comes back of the object; the caller frees both. */
static int pass(const struct record_type *type, const void *object, void *back, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    return record_decode_partly(type, bytes.bytes, bytes.length, back, err);
}

/* What encoding is told of the limits is what decoding keeps. */
static void assert_checked(
    const struct record_type *type, const void *object, int expected, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_free_ void *back = xcalloc(1, type->size);
    record_encode(type, object, &bytes);
    int decoded = record_decode(type, bytes.bytes, bytes.length, back, &(struct error){ 0 });
    record_clear(type, back);
    assert_int_equal(record_check(type, object, err), expected);
    assert_int_equal(decoded, expected);
}

static void check_field(const struct record_type *type, const struct record_field *field)
{
    _cleanup_free_ void *object = xcalloc(1, type->size), *back = xcalloc(1, type->size);
    void *member = (char *)object + field->offset;
    struct error err = { 0 };
    fill_field(field, member, field->limit);
    assert_checked(type, object, 0, &err);
    record_clear(type, object);

    fill_field(field, member, field->limit + 1U);
    assert_checked(type, object, -EBADMSG, &err);
    assert_non_null(strstr(err.message, field->name));
    /* The first number of a message says what it is about. */
    if (type->fields[0].kind == RECORD_U64)
        *(uint64_t *)((char *)object + type->fields[0].offset) = 7;
    err = (struct error){ 0 };
    assert_int_equal(pass(type, object, back, &err), 1);
    assert_non_null(strstr(err.message, field->name));
    if (type->fields[0].kind == RECORD_U64)
        assert_true(*(uint64_t *)((char *)back + type->fields[0].offset) == 7);
    record_clear(type, object);
    _cleanup_buffer_ struct buffer left = { 0 }, without = { 0 };
    if (type->fields[0].kind == RECORD_U64)
        *(uint64_t *)((char *)object + type->fields[0].offset) = 7;
    record_encode(type, back, &left);
    record_encode(type, object, &without);
    assert_int_equal(left.length, without.length);
    assert_memory_equal(left.bytes, without.bytes, without.length);
    record_clear(type, back);
}

static size_t check_fields(const struct record_type *type)
{
    size_t count = 0;
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        if (!has_limit(field))
            continue;
        check_field(type, field);
        count++;
        if (field->kind == RECORD_LIST)
            count += check_fields(field->sub);
    }
    return count;
}

static void every_field_is_read_at_its_limit_and_left_out_above_it(void **state)
{
    size_t count = 0;
    for (uint16_t id = 0; id < IDS; id++)
        if (message_type(id) != NULL)
            count += check_fields(message_type(id));
    const struct record_type *const stored[] = { &launch_spec_record, &launch_exit_record, &job_event_record,
        &job_spec_record, &job_ask_record, &job_usage_record, &job_nodes_record, &cluster_change_record };
    for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++)
        count += check_fields(stored[i]);
    assert_true(count > 100);
}

/* Every field of the type at its limit. */
static void fill_all(const struct record_type *type, void *object)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (has_limit(&type->fields[i]) && type->fields[i].kind != RECORD_LIST)
            fill_field(&type->fields[i], (char *)object + type->fields[i].offset, type->fields[i].limit);
}

static void assert_fits(const struct record_type *type, void *object)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    if (bytes.length > LINK_MESSAGE_MAX)
        fail_msg("%s has %zu bytes", type->name, bytes.length);
    record_clear(type, object);
}

/* A longer one could never be delivered, and would be sent again after each new link. */
static void the_largest_orders_fit_into_a_frame(void **state)
{
    const struct record_type *const types[] = { &message_notify_record, &message_open_step_record,
        &message_open_port_record, &message_open_log_record, &message_started_record, &message_exited_record,
        &message_returned_record, &message_process_info_record, &message_notified_record };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        _cleanup_free_ void *object = xcalloc(1, types[i]->size);
        fill_all(types[i], object);
        assert_fits(types[i], object);
    }
}

/* A node with as many GPUs and processes on them as there may be, and more running jobs than a frame holds.
 */
static void a_sample_too_large_for_a_frame_fits_without_its_spare_fields(void **state)
{
    struct message_gpus sample = { 0 };
    struct gpu_state *gpus = xcalloc(NODE_GPUS_MAX, sizeof(*gpus));
    for (size_t i = 0; i < NODE_GPUS_MAX; i++) {
        fill_all(&gpu_state_record, &gpus[i]);
        struct gpu_process *processes = xcalloc(GPU_PROCESSES_MAX, sizeof(*processes));
        for (size_t k = 0; k < GPU_PROCESSES_MAX; k++)
            fill_all(&gpu_process_record, &processes[k]);
        gpus[i].processes = (struct record_list){ processes, GPU_PROCESSES_MAX };
    }
    sample.gpus = (struct record_list){ gpus, NODE_GPUS_MAX };
    _cleanup_buffer_ struct buffer whole = { 0 }, bare = { 0 };
    record_encode(&message_gpus_record, &sample, &whole);
    assert_true(whole.length > LINK_MESSAGE_MAX);
    record_encode_bare(&message_gpus_record, &sample, &bare);
    assert_true(bare.length < LINK_MESSAGE_MAX);
    struct message_gpus back;
    assert_int_equal(record_decode(&message_gpus_record, bare.bytes, bare.length, &back, NULL), 0);
    const struct gpu_state *got = back.gpus.items;
    assert_int_equal(back.gpus.count, NODE_GPUS_MAX);
    assert_string_equal(got[NODE_GPUS_MAX - 1].uuid, gpus[NODE_GPUS_MAX - 1].uuid);
    assert_int_equal(got[0].processes.count, 0);
    record_clear(&message_gpus_record, &back);
    record_clear(&message_gpus_record, &sample);
}

/* The longest request that the API takes, for as many nodes as a job may have, all with long names. */
static void the_largest_launch_fits_into_a_frame(void **state)
{
    struct message_launch launch = { .id.job = 1 };
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    struct launch_peer *peers = xcalloc(JOB_NODES_MAX, sizeof(*peers));
    struct gpu_grant *grants = xcalloc(NODE_GPUS_MAX, sizeof(*grants));
    char name[SPEC_NAME_MAX + 1];
    memset(name, 'n', SPEC_NAME_MAX);
    name[SPEC_NAME_MAX] = '\0';
    spec->script = xcalloc(1, LIMIT_BODY_BYTES + 1U);
    memset(spec->script, 'x', LIMIT_BODY_BYTES);
    record_pack(&job_spec_record, spec, &launch.spec);
    job_spec_free(spec);
    for (size_t i = 0; i < JOB_NODES_MAX; i++)
        peers[i] = (struct launch_peer){ .name = xstrdup(name), .address = xstrdup(name), .gpus = 8 };
    launch.peers = (struct record_list){ peers, JOB_NODES_MAX };
    for (size_t i = 0; i < NODE_GPUS_MAX; i++)
        fill_all(&gpu_grant_record, &grants[i]);
    launch.gpus = (struct record_list){ grants, NODE_GPUS_MAX };
    assert_fits(&message_launch_record, &launch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read_at_its_limit_and_left_out_above_it),
        cmocka_unit_test(the_largest_orders_fit_into_a_frame),
        cmocka_unit_test(a_sample_too_large_for_a_frame_fits_without_its_spare_fields),
        cmocka_unit_test(the_largest_launch_fits_into_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
