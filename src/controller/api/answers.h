/* SPDX-License-Identifier: MIT */
/* The objects that the API answers with, for the OpenAPI document. That of a job is in wire/json_job.h. */
#pragma once

#include <jansson.h>

/* The schemas by name, "Gpu": {"type": "object", "properties": ...}. The caller owns the result. */
json_t *answers_write_schemas(void);

/*
 * One value in the form of JSON Schema: "string", "string|null"; "Gpu" refers to a schema, "Gpu[]" and
 * "string[]" are arrays. The caller owns the result.
 */
json_t *answers_write_type(const char *type);
