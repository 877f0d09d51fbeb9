/* SPDX-License-Identifier: MIT */
/* Shorthands are expanded before the strict reader processes the object, so that there is one set of
 * rules. */
#include "wire/json_spec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"
#include "wire/json_record.h"
#include "wire/json_text.h"

static bool is_given(const json_t *value, const char *key)
{
    const json_t *item = json_object_get(value, key);
    return item != NULL && !json_is_null(item);
}

static int set_gpus(json_t *object, double gpus, struct error *err)
{
    bool is_part = gpus > 0 && gpus < 1;
    int share = is_part ? (int)(gpus * ASK_SHARE_WHOLE + 0.5) : 0;
    if (gpus < 0 || gpus > ASK_GPUS_MAX)
        return error_set(err, -ERANGE, "gpus: %g is outside 0 to %u", gpus, ASK_GPUS_MAX);
    if ((!is_part && gpus != (double)(int)gpus) || (is_part && (share == 0 || share == ASK_SHARE_WHOLE))) {
        (void)error_set(err, -EINVAL, "gpus: %g is neither a whole number nor a fraction below 1", gpus);
        return error_hint(err, "use a whole number, or 0.001 to 0.999");
    }
    if (is_part && is_given(object, "gpu_share"))
        return error_set(err, -EINVAL, "gpus and gpu_share both specify a fraction");
    (void)json_object_set_new(object, "gpus", json_integer(is_part ? 1 : (json_int_t)gpus));
    if (!is_given(object, "gpu_share"))
        (void)json_object_set_new(object, "gpu_share", json_integer(share));
    return 0;
}

/* 2, 0.5, "2", "0.25" or "2:h200". Other values are left to the strict reader. */
static int expand_gpus(json_t *object, struct error *err)
{
    const json_t *value = json_object_get(object, "gpus");
    if (json_is_number(value))
        return set_gpus(object, json_number_value(value), err);
    if (!json_is_string(value))
        return 0;
    const char *text = json_string_value(value);
    size_t digits = strspn(text, "0123456789."), length = strcspn(text, ":");
    char *end = NULL;
    double gpus = strtod(text, &end);
    const char *model = text[length] == ':' ? text + length + 1 : NULL;
    if (digits == 0 || digits != length || end != text + length || (model != NULL && *model == '\0') ||
        strlen(text) != json_string_length(value)) {
        _cleanup_free_ char *shown = text_escape(text, 60);
        (void)error_set(err, -EINVAL, "gpus: '%s' is not a number of GPUs", shown);
        return error_hint(err, "write 2, 0.5 or 2:h200");
    }
    if (model != NULL && is_given(object, "gpu_model"))
        return error_set(err, -EINVAL, "gpus and gpu_model both specify a model");
    if (model != NULL)
        (void)json_object_set_new(object, "gpu_model", json_string(model));
    return set_gpus(object, gpus, err);
}

/* 41, "41:ok,42", or an array of such. */
static int expand_after(json_t *object, struct error *err)
{
    json_t *value = json_object_get(object, "after");
    if (json_is_integer(value))
        return json_object_set_new(
            object, "after", json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value)));
    if (!json_is_array(value))
        return 0;
    _cleanup_buffer_ struct buffer text = { 0 };
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        if (i > 0)
            buffer_append_text(&text, ",");
        if (json_is_integer(item))
            buffer_printf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(item));
        else if (json_is_string(item) && strlen(json_string_value(item)) == json_string_length(item))
            buffer_append_text(&text, json_string_value(item));
        else
            return error_set(err, -EINVAL, "after[%zu] must be a job, such as 41 or \"41:any\"", i);
    }
    return json_object_set_new(object, "after", i > 0 ? json_string(buffer_text(&text)) : json_null());
}

/* The number of GPUs follows from their list, or from the numbers of nodes and of GPUs per node; if it is
 * reset, also from those that the request had before. */
static int follow_gpus(const json_t *object, struct job_ask *ask, struct error *err)
{
    bool is_reset = json_is_null(json_object_get(object, "gpus"));
    if (is_given(object, "gpus"))
        return 0;
    if (is_given(object, "gpu_ids") || (is_reset && ask->gpu_ids != NULL)) {
        struct ask_gpu *gpus = NULL;
        size_t count = 0;
        int r = parse_gpu_ids(ask->gpu_ids, &gpus, &count, err);
        ask_gpus_free(gpus, count);
        if (r == 0)
            ask->gpus = (uint32_t)count;
        return r;
    }
    bool has_nodes = is_given(object, "nodes") || (is_reset && ask->nodes > 0);
    bool has_each = is_given(object, "gpus_per_node") || (is_reset && ask->gpus_per_node > 0);
    uint64_t product =
        (uint64_t)(ask->nodes > 0 ? ask->nodes : 1) * (ask->gpus_per_node > 0 ? ask->gpus_per_node : 1);
    if ((has_nodes || has_each) && product <= UINT32_MAX)
        ask->gpus = (uint32_t)product;
    return 0;
}

static int expand(json_t *object, struct error *err)
{
    int r = expand_gpus(object, err);
    return r == 0 ? expand_after(object, err) : r;
}

int json_spec_read(json_t *value, struct job_spec *spec, struct error *err)
{
    job_spec_init(spec);
    _cleanup_json_ json_t *copy = json_copy(value);
    json_t *command = json_object_get(copy, "command");
    if (json_is_string(command) && json_string_length(command) > 0)
        (void)json_object_set_new(copy, "command", json_pack("[s,s,O]", "/bin/sh", "-c", command));
    int r = expand(copy, err);
    if (r == 0)
        r = json_record_read(&job_spec_record, copy, spec, err);
    return r == 0 ? follow_gpus(copy, &spec->ask, err) : r;
}

/* A null resets the request: the field gets its default. */
static void drop_nulls(const json_t *object, struct job_ask *ask)
{
    _cleanup_free_ struct record_field *given = xcalloc(job_ask_record.n_fields, sizeof(*given));
    struct record_type kept = { .id = job_ask_record.id, .size = sizeof(*ask), .fields = given };
    for (size_t i = 0; i < job_ask_record.n_fields; i++)
        if (!json_is_null(json_object_get(object, job_ask_record.fields[i].name)))
            given[kept.n_fields++] = job_ask_record.fields[i];
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&kept, ask, &bytes);
    job_ask_clear(ask);
    (void)record_decode(&kept, bytes.bytes, bytes.length, ask, NULL);
    if (json_is_null(json_object_get(object, "gpus"))) {
        struct job_ask fresh;
        job_ask_init(&fresh);
        ask->gpus = fresh.gpus; // the only default that is not zero
    }
}

int json_ask_read(json_t *value, struct job_ask *ask, struct error *err)
{
    _cleanup_json_ json_t *copy = json_copy(value);
    int r = expand(copy, err);
    if (r == 0)
        r = json_record_read(&job_ask_record, copy, ask, err);
    if (r < 0)
        return r;
    drop_nulls(value, ask);
    return follow_gpus(copy, ask, err);
}

/* --- as its owner sees it --- */

#define MEMBER(...) JSON_FIELD(job_spec, __VA_ARGS__), .is_optional = true

static const struct json_member spec_members[] = {
    { "argv", "string[]", "the command; this and the next for its owner",
        MEMBER(command, STRINGS, .has_zero = true) },
    { "cwd", "string|null", "directory in which it runs", MEMBER(cwd, STRING) },
    { "cwd_fallback", "string|null", "directory to use if that does not exist",
        MEMBER(cwd_fallback, STRING) },
    { "setup", "string|null", "shell command that runs first", MEMBER(setup, STRING) },
    { "output", "string|null", "output file as requested", MEMBER(output, STRING) },
    { "error", "string|null", "file for standard error as requested", MEMBER(error, STRING) },
    { "input", "string|null", "file for standard input", MEMBER(input, STRING) },
    { "env", "object", "its environment", MEMBER(env, ENV) },
    { "tty", "boolean", "it has a terminal", MEMBER(tty, BOOL) },
    { "image", "string|null", "container image", MEMBER(image, STRING) },
    { "image_mounts", "string[]", "additional mounts", MEMBER(image_mounts, STRINGS, .has_zero = true) },
    { "image_runtime", "string|null", "podman or apptainer", MEMBER(image_runtime, STRING) },
};

const struct json_table json_spec_table = JSON_TABLE(job_spec, spec_members);
