/* SPDX-License-Identifier: MIT */
/*
 * The last test of parking on each node, a row of the store for each. mgpud parks jobs by its own rule
 * (park: auto) only where the test has passed with the driver that the node has now, and with the models of
 * all its GPUs: a driver that is replaced has to be tested again. A test is an event of job 0; what follows
 * from it for the scheduler is in the description of the node, which changes with the driver as well.
 */
#include "controller/core/park_proof.h"

#include <errno.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/access.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/park.h"
#include "controller/core/settings.h"
#include "controller/core/state.h"

#define GIGABYTES 1e9
#define SIZE_TEXT 32

/* Damaged rows are dropped: the node is tested again. */
static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct park_proof proof;
    if (record_decode(&park_proof_record, bytes, length, &proof, err) < 0)
        return 0;
    if (park_proof_check(&proof, err) == 0)
        (void)core_keep_park_proof(core, key, &proof);
    record_clear(&park_proof_record, &proof);
    return 0;
}

/* --- a new one --- */

static int check(
    const struct core_node *node, const char *name, const struct park_proof *proof, struct error *err)
{
    if (node == NULL || !node->is_up)
        return error_set(err, -ENOENT, "there is no node %.100s, or it is not connected", name);
    if (park_proof_check(proof, err) < 0)
        return err->code;
    if (node->hello.driver == NULL) {
        (void)error_set(err, -EINVAL, "node %s does not report its driver", node->name);
        return error_hint(err, "its mgpu-agent may be older: update it");
    }
    if (!text_equal(node->hello.driver, proof->driver)) {
        (void)error_set(err, -EALREADY, "driver %s was tested, and node %s has %s now", proof->driver,
            node->name, node->hello.driver);
        return error_hint(err, "test it again: mgpu gpu test --park %s", node->name);
    }
    return 0;
}

static char *describe(const struct park_proof *proof)
{
    char size[SIZE_TEXT];
    if (!proof->passed)
        return xasprintf("parking was tested with driver %s: %s", proof->driver, proof->text);
    format_size(proof->most_bytes, size, sizeof(size));
    return xasprintf("parking was tested with driver %s: %s saved at %.1f GB/s and restored at %.1f GB/s",
        proof->driver, size, park_proof_save_rate(proof) / GIGABYTES,
        park_proof_load_rate(proof) / GIGABYTES);
}

static void keep(struct core *core, const char *node, const struct park_proof *proof)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&park_proof_record, proof, &bytes);
    store_batch_put(core_batch(core)->changes, CORE_PARK_PROOF, node, &bytes);
}

static void announce(struct core *core, const char *node, const struct park_proof *proof)
{
    _cleanup_(cluster_change_clear) struct cluster_change change = {
        .kind = CHANGE_NODE_PARKING,
        .uid = proof->uid,
        .node = xstrdup(node),
        .text = describe(proof),
        .parks = proof->passed,
    };
    core_change_cluster(core, &change);
}

void core_set_park_proof(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const struct park_proof *proof, void *request)
{
    struct core_answer answer = { 0 };
    core_begin(core, boot_ms, wall_ms);
    struct core_node *place = core_find_node(core, node);
    answer.code = core_check_admin(core, who, "record whether a node can park jobs", 0, &answer.err);
    if (answer.code == 0)
        answer.code = check(place, node, proof, &answer.err);
    if (answer.code == 0) {
        int64_t before_ms = core_measured_park_ms(core);
        struct park_proof copy;
        record_copy(&park_proof_record, &copy, proof);
        copy.tested_ms = core->now_ms;
        copy.uid = who->uid;
        const struct park_proof *kept = core_keep_park_proof(core, place->name, &copy);
        keep(core, place->name, kept);
        announce(core, place->name, kept);
        if (kept->passed)
            core_forget_park_refusals(core);
        core_node_changed(core, place);
        if (core_configure_park_cost(core, before_ms))
            core_note_settings(core, true);
    }
    core_reply(core, request, &answer);
}

/* --- lifetime --- */

/* The rows are loaded after the scheduler was made. */
static void begin(struct core *core)
{
    (void)core_configure_park_cost(core, 0);
}

static const struct core_kind kinds[] = {
    { .kind = CORE_PARK_PROOF, .load = load },
    { 0 },
};

const struct core_concern core_concern_park_proof = {
    .name = "park_proof",
    .init = core_init_park_proofs,
    .free = core_free_park_proofs,
    .kinds = kinds,
    .begin = begin,
};
