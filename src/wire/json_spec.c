/* SPDX-License-Identifier: MIT */
/* The shorthands are rewritten before the strict reader sees the object, so that there is one set of rules.
 */
#include "wire/json_spec.h"

#include <stdbool.h>
#include <stdlib.h>

#include "wire/json_record.h"
#include "wire/json_text.h"

static bool is_given(const json_t *value, const char *key)
{
    const json_t *item = json_object_get(value, key);
    return item != NULL && !json_is_null(item);
}

int json_spec_read(json_t *value, struct job_spec *spec, struct error *err)
{
    job_spec_init(spec);
    _cleanup_json_ json_t *copy = json_copy(value);
    json_t *command = json_object_get(copy, "command");
    if (json_is_string(command) && json_string_length(command) > 0)
        (void)json_object_set_new(copy, "command", json_pack("[s,s,O]", "/bin/sh", "-c", command));
    int r = json_record_read(&job_spec_record, copy, spec, err);
    if (r < 0 || !is_given(copy, "gpu_ids") || is_given(copy, "gpus"))
        return r;
    uint32_t *ids = NULL;
    size_t count = 0;
    r = job_spec_gpu_ids(spec, &ids, &count, err);
    free(ids);
    if (r == 0)
        spec->gpus = (uint32_t)count;
    return r;
}
