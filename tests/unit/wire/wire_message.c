/* SPDX-License-Identifier: MIT */
/* Whatever the limits of fields permit fits into a frame. (That each field is read at its limit is the claim
 * of base_record_check.) */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record_fill.h"
#include "unit_test.h"
#include "wire/limits.h"
#include "wire/message.h"

/* How long a frame may be. The first ones of connections that are not a link are limited more strictly. */
static size_t frame_max(const struct record_type *type)
{
    static const struct {
        uint16_t id;
        size_t bytes;
    } first[] = {
        { MESSAGE_JOIN, JOIN_MESSAGE_MAX },
        { MESSAGE_JOINED, JOIN_MESSAGE_MAX },
        { MESSAGE_PROBE, JOIN_MESSAGE_MAX },
        { MESSAGE_PROBED, JOIN_MESSAGE_MAX },
        { MESSAGE_REFUSED, JOIN_MESSAGE_MAX },
        { MESSAGE_STREAM, STREAM_FIRST_MAX },
        { MESSAGE_JOB_CLIENT, STREAM_FIRST_MAX },
    };
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
        if (first[i].id == type->id)
            return first[i].bytes;
    return LINK_MESSAGE_MAX;
}

static void assert_fits(const struct record_type *type, void *object)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    if (bytes.length > frame_max(type))
        fail_msg("%s has %zu bytes; at most %zu are taken", type->name, bytes.length, frame_max(type));
    record_clear(type, object);
}

/* The messages that may be longer with everything in them. A frame goes without their spare fields then. */
static const struct {
    uint16_t id;
    const char *spare; // what is left out, and why that is enough
} longer[] = {
    { MESSAGE_HELLO, "processes of GPUs: the first GPUS has them, if they fit there" },
    { MESSAGE_GPUS, "processes of GPUs and usages of attempts: a later sample has them" },
    { MESSAGE_LAUNCH, "spec and peers: the agent returns such a launch" },
    { MESSAGE_PREPARE, "spec and peers, as of LAUNCH" },
};

static bool may_be_longer(const struct record_type *type)
{
    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++)
        if (longer[i].id == type->id)
            return true;
    return false;
}

static bool has_spare(const struct record_type *type)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (type->fields[i].is_spare || (type->fields[i].sub != NULL && has_spare(type->fields[i].sub)))
            return true;
    return false;
}

/* One that does not fit could never be delivered, and would be sent again after each new link: a node whose
 * HELLO does not fit stays out. */
TEST(every_message_with_all_fields_at_their_limits_fits_into_a_frame)
{
    size_t count = 0;
    for (unsigned id = 0; id <= UINT16_MAX; id++) {
        const struct record_type *type = message_type((uint16_t)id);
        if (type == NULL)
            continue;
        assert_int_equal(has_spare(type), may_be_longer(type));
        _cleanup_free_ void *object = xcalloc(1, type->size);
        record_fill(type, FILL_BARE, SIZE_MAX, object);
        assert_fits(type, object);
        count++;
    }
    assert_true(count > 30);
}

/* A node with as many GPUs and processes on them as there may be. */
TEST(a_sample_too_large_for_a_frame_fits_without_its_spare_fields)
{
    struct message_gpus sample = { 0 };
    struct gpu_state *gpus = xcalloc(NODE_GPUS_MAX, sizeof(*gpus));
    for (size_t i = 0; i < NODE_GPUS_MAX; i++)
        record_fill(&gpu_state_record, FILL_WHOLE, SIZE_MAX, &gpus[i]);
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
TEST(the_largest_launch_fits_into_a_frame)
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
        record_fill(&gpu_grant_record, FILL_WHOLE, SIZE_MAX, &grants[i]);
    launch.gpus = (struct record_list){ grants, NODE_GPUS_MAX };
    assert_fits(&message_launch_record, &launch);
}
