/* SPDX-License-Identifier: MIT */
/* What connects a kind of MPI with srun. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "compat/stepd/stepd_private.h"

static void gather(void *arg, const void *key, size_t key_length, const uint32_t *nodes, size_t n_nodes,
    const void *data, size_t length)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    frame_add_number(&out, 4, key_length);
    buffer_append(&out, key, key_length);
    frame_add_number(&out, 4, n_nodes);
    for (size_t i = 0; i < n_nodes; i++)
        frame_add_number(&out, 4, nodes[i]);
    if (length > 0)
        buffer_append(&out, data, length);
    stepd_put(arg, FRAME_GATHER, FRAME_ALL, out.bytes, out.length);
}

static void fetch(void *arg, uint32_t task, uint64_t request)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    frame_add_number(&out, 8, request);
    stepd_put(arg, FRAME_MODEX, task, out.bytes, out.length);
}

static void answer(void *arg, uint64_t request, int status, const void *data, size_t length)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    frame_add_number(&out, 8, request);
    frame_add_number(&out, 4, (uint32_t)status);
    if (length > 0)
        buffer_append(&out, data, length);
    stepd_put(arg, FRAME_MODEX_ANSWER, FRAME_ALL, out.bytes, out.length);
}

static void abort_step(void *arg, int code, const char *message)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    frame_add_number(&out, 4, (uint32_t)code);
    buffer_append_text(&out, message);
    stepd_put(arg, FRAME_ABORT, FRAME_ALL, out.bytes, out.length);
}

/* Words: kind, name, place of this node, then name and number of tasks of each node. */
static int read_setup(struct stepd *stepd, const struct strings *words, struct error *err)
{
    struct mpi_setup *setup = &stepd->setup;
    if (words->count < 5 || words->count % 2 == 0 || setup->name != NULL)
        return error_set(err, -EBADMSG, "srun's message about MPI is malformed");
    size_t n_nodes = (words->count - 3) / 2;
    setup->name = xstrdup(words->items[1]);
    setup->here = (uint32_t)strtoul(words->items[2], NULL, 10);
    setup->first = xcalloc(n_nodes + 1, sizeof(*setup->first));
    for (size_t i = 0; i < n_nodes; i++) {
        unsigned long count = strtoul(words->items[4 + 2 * i], NULL, 10);
        if (count > STEPD_TASKS_MAX || setup->first[i] > UINT32_MAX - count)
            return error_set(err, -EBADMSG, "srun has named %lu tasks of node %.60s; a node has %u at most",
                count, words->items[3 + 2 * i], STEPD_TASKS_MAX);
        strings_add(&setup->nodes, words->items[3 + 2 * i]);
        setup->first[i + 1] = setup->first[i] + (uint32_t)count;
    }
    if (setup->here >= n_nodes)
        return error_set(err, -EBADMSG, "srun's message about MPI is malformed");
    return 0;
}

int stepd_open_mpi(struct stepd *stepd, const struct frame *frame, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    const struct mpi_acts acts = {
        .arg = stepd, .gather = gather, .fetch = fetch, .answer = answer, .abort = abort_step
    };
    if (stepd->mpi != NULL || stepd->count > 0 || stepd->is_started || !frame_words(frame, &words))
        return error_set(err, -EBADMSG, "srun's message about MPI is malformed");
    int r = read_setup(stepd, &words, err);
    const struct mpi_kind *kind = r == 0 ? mpi_kind_find(words.items[0]) : NULL;
    if (r == 0 && kind == NULL)
        r = error_set(err, -EINVAL, "the kind of MPI '%.30s' is unknown here", words.items[0]);
    if (r == 0)
        r = kind->check(err);
    if (r == 0)
        r = kind->open(&stepd->setup, &acts, &stepd->mpi_state, err);
    if (r == 0)
        stepd->mpi = kind;
    return r;
}
