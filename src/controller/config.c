/* SPDX-License-Identifier: MIT */
/* The configuration file: YAML, one mapping, every value a scalar but those of "users" and "groups". An empty
 * file is a good file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/memory.h"
#include "base/strings.h"
#include "controller/settings.h"
#include "controller/settings_sched.h"

static void close_file(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file);
}

static const char *text_of(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* "users:" and "groups:" map names to their own limits. */
static int read_account(const char *path, yaml_document_t *document, bool is_group,
    const yaml_node_pair_t *account, struct controller_options *options, struct error *err)
{
    const yaml_node_t *name = yaml_document_get_node(document, account->key);
    const yaml_node_t *limits = yaml_document_get_node(document, account->value);
    size_t line = name->start_mark.line + 1;
    if (text_of(name) == NULL || limits->type != YAML_MAPPING_NODE)
        return error_set(err, -EINVAL, "%s:%zu: a name and a mapping of its limits belong here", path, line);
    for (const yaml_node_pair_t *pair = limits->data.mapping.pairs.start;
         pair < limits->data.mapping.pairs.top; pair++) {
        const char *key = text_of(yaml_document_get_node(document, pair->key));
        const char *value = text_of(yaml_document_get_node(document, pair->value));
        if (key == NULL || value == NULL)
            return error_set(err, -EINVAL, "%s:%zu: a limit has a single value", path, line);
        int r = settings_set_account(options, is_group, text_of(name), key, value, err);
        if (r < 0)
            return error_wrap(err, "%s:%zu", path, line);
    }
    return 0;
}

static int read_accounts(const char *path, yaml_document_t *document, bool is_group,
    const yaml_node_t *accounts, struct controller_options *options, struct error *err)
{
    int r = 0;
    for (const yaml_node_pair_t *pair = accounts->data.mapping.pairs.start;
         r == 0 && pair < accounts->data.mapping.pairs.top; pair++)
        r = read_account(path, document, is_group, pair, options, err);
    return r;
}

static int read_pair(const char *path, yaml_document_t *document, const yaml_node_pair_t *pair,
    struct controller_options *options, struct error *err)
{
    const yaml_node_t *key = yaml_document_get_node(document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(document, pair->value);
    size_t line = key->start_mark.line + 1;
    bool is_group = text_of(key) != NULL && strcmp(text_of(key), "groups") == 0;
    if (value->type == YAML_MAPPING_NODE && (is_group || text_equal(text_of(key), "users")))
        return read_accounts(path, document, is_group, value, options, err);
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
