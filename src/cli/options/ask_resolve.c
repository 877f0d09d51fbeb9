/* SPDX-License-Identifier: MIT */
/* Options of run and submit that contradict each other, or that have a combined meaning. mgpud checks
 * everything else. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "cli/options/ask.h"
#include "job/ask.h"

/* Options that are meaningless without a GPU. */
static int check_no_gpu(const json_t *request, struct error *err)
{
    static const struct {
        const char *key, *option;
    } rows[] = { { "gpu_ids", "-G" }, { "gpu_mem", "-m" }, { "gpu_allow", "--gpu-allow" },
        { "gpus_per_node", "--gpus-per-node" }, { "idle_timeout", "--idle-timeout" },
        { "idle_ok", "--idle-ok" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (json_object_get(request, rows[i].key) != NULL)
            return error_set(err, -EINVAL, "%s has no effect with -g 0", rows[i].option);
    return 0;
}

/* Options that contradict -G, which selects the GPUs completely. */
static int check_named_gpus(const json_t *request, struct error *err)
{
    static const struct {
        const char *key, *option;
    } rows[] = { { "gpu_allow", "--gpu-allow" }, { "gpu_model", "a model" }, { "nodes", "-N" },
        { "gpus_per_node", "--gpus-per-node" } };
    const json_t *gpus = json_object_get(request, "gpus");
    const char *ids = field_text(request, "gpu_ids");
    struct ask_gpu *named = NULL;
    size_t count = 0;
    int r = ids != NULL ? parse_gpu_ids(ids, &named, &count, err) : 0;
    ask_gpus_free(named, count);
    if (r < 0 || ids == NULL)
        return r;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (json_object_get(request, rows[i].key) != NULL)
            return error_set(err, -EINVAL, "%s cannot be combined with -G", rows[i].option);
    if (json_is_string(gpus))
        return error_set(err, -EINVAL, "a model cannot be combined with -G");
    if (!json_is_integer(gpus) || json_integer_value(gpus) == (json_int_t)count)
        return 0;
    (void)error_set(err, -EINVAL, "-G names %zu GPU%s, but -g requests %" JSON_INTEGER_FORMAT, count,
        count == 1 ? "" : "s", json_integer_value(gpus));
    return error_hint(err, "omit -g: -G implies it");
}

/* -N and --gpus-per-node together are a number of GPUs. */
static int resolve_nodes(json_t *request, int64_t gpus, struct error *err)
{
    int64_t nodes = field_integer(request, "nodes", 1);
    int64_t each = field_integer(request, "gpus_per_node", 0);
    bool has_gpus = json_object_get(request, "gpus") != NULL || json_object_get(request, "gpu_ids") != NULL;
    if (each > 0 && !has_gpus) {
        if (nodes * each > ASK_GPUS_MAX)
            return error_set(err, -ERANGE,
                "%" PRId64 " nodes with %" PRId64 " GPUs each are more than %u GPUs", nodes, each,
                ASK_GPUS_MAX);
        return json_object_set_new(request, "gpus", json_integer(nodes * each));
    }
    if (each > 0 && gpus > 0 && nodes * each != gpus && json_object_get(request, "nodes") != NULL)
        return error_set(err, -EINVAL,
            "-g %" PRId64 " contradicts -N %" PRId64 " with --gpus-per-node %" PRId64 ", which are %" PRId64
            " GPUs",
            gpus, nodes, each, nodes * each);
    if (each > 0 && gpus % each != 0)
        return error_set(
            err, -EINVAL, "-g %" PRId64 " cannot be divided into %" PRId64 " GPUs a node", gpus, each);
    bool is_short = nodes > 1 && gpus > 0 && gpus < nodes && json_object_get(request, "gpu_ids") == NULL;
    if (!is_short)
        return 0;
    (void)error_set(err, -EINVAL, "-N %" PRId64 " needs a GPU on each node, but -g is %" PRId64, nodes, gpus);
    return error_hint(err, "-g %" PRId64 ", or --gpus-per-node 1, or -g 0 for no GPU", nodes);
}

int ask_resolve(json_t *request, struct error *err)
{
    const json_t *gpus = json_object_get(request, "gpus");
    const char *begin = field_text(request, "begin"), *deadline = field_text(request, "deadline");
    bool is_none = json_is_integer(gpus) && json_integer_value(gpus) == 0;
    int64_t count = 1;
    if (json_is_string(gpus))
        count = strtoll(json_string_value(gpus), NULL, 10);
    else if (json_is_integer(gpus))
        count = json_integer_value(gpus);
    int r = is_none ? check_no_gpu(request, err) : 0;
    if (r < 0)
        return r;
    r = check_named_gpus(request, err);
    if (r < 0)
        return r;
    if (json_is_real(gpus) && json_object_get(request, "nodes") != NULL &&
        field_integer(request, "nodes", 1) > 1)
        return error_set(err, -EINVAL, "-g %g is a part of a single GPU on one node", json_real_value(gpus));
    /* Both are UTC in the same form, so that they compare as text. */
    if (begin != NULL && deadline != NULL && strcmp(deadline, begin) <= 0)
        return error_set(err, -EINVAL, "--deadline is not after --begin, so the job could never start");
    return resolve_nodes(request, count, err);
}
