/* SPDX-License-Identifier: MIT */
/* The configuration file: YAML, one mapping, every value a scalar. An empty file is a good file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/memory.h"
#include "controller/settings.h"

static void close_file(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file);
}

static int read_pair(const char *path, yaml_document_t *document, const yaml_node_pair_t *pair,
    struct controller_options *options, struct error *err)
{
    const yaml_node_t *key = yaml_document_get_node(document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(document, pair->value);
    size_t line = key->start_mark.line + 1;
    if (key->type != YAML_SCALAR_NODE || value->type != YAML_SCALAR_NODE)
        return error_set(err, -EINVAL, "%s:%zu: a key and a single value belong here", path, line);
    int r = settings_set(
        options, (const char *)key->data.scalar.value, (const char *)value->data.scalar.value, err);
    return r < 0 ? error_wrap(err, "%s:%zu", path, line) : 0;
}

static int read_document(
    const char *path, yaml_document_t *document, struct controller_options *options, struct error *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return error_set(err, -EINVAL, "%s:%zu: the file must be a mapping of keys to values", path,
            root->start_mark.line + 1);
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top;
         pair++) {
        int r = read_pair(path, document, pair, options, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int config_read(const char *path, struct controller_options *options, struct error *err)
{
    _cleanup_(close_file) FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, -errno, "cannot read %s", path);
    _cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };
    if (yaml_parser_initialize(&parser) == 0)
        return error_set(err, -ENOMEM, "%s: no memory for the parser", path);
    yaml_parser_set_input_file(&parser, file);
    yaml_document_t document;
    if (yaml_parser_load(&parser, &document) == 0)
        return error_set(err, -EINVAL, "%s:%zu: %s", path, parser.problem_mark.line + 1,
            parser.problem != NULL ? parser.problem : "not YAML");
    int r = read_document(path, &document, options, err);
    yaml_document_delete(&document);
    return r;
}
