/* SPDX-License-Identifier: MIT */
/* Options in YAML files: documents, mappings, values, and setting an option by its long name. Every error
 * includes file and line. */
#pragma once

#include <stddef.h>
#include <yaml.h>

#include "base/error.h"
#include "cli/options/call.h"

struct yaml_source {
    const char *path;
    yaml_document_t *document;
    struct error *err;
};

/* Called for each document that is not empty. */
typedef int yaml_document_fn(void *arg, struct yaml_source *source, const yaml_node_t *root);
int yaml_each_document(
    const char *path, const char *text, yaml_document_fn *take, void *arg, struct error *err);

/* Called for each pair of a mapping, or each value with its key, until one fails. */
typedef int yaml_pair_fn(void *arg, const yaml_node_t *key, const yaml_node_t *value);
int yaml_each_pair(
    const struct yaml_source *source, const yaml_node_t *mapping, yaml_pair_fn *take, void *arg);

/* Calls for a scalar, or for each element of a list of scalars. */
int yaml_each_value(const struct yaml_source *source, const yaml_node_t *key, const yaml_node_t *value,
    yaml_pair_fn *take, void *arg);

/* The text of a scalar, NULL for anything else. Owned by the document. */
const char *yaml_text(const yaml_node_t *node);

/* Returns -EINVAL, with file and line of the node before the sentence. */
int yaml_refuse(const struct yaml_source *source, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the option named by the key; a flag is true or false. `verb` names the command in messages. */
int yaml_set_option(const struct yaml_source *source, struct call *call, const char *verb,
    const yaml_node_t *key, const yaml_node_t *value);
