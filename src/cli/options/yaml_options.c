/* SPDX-License-Identifier: MIT */
#include "cli/options/yaml_options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/yaml_problem.h"

const char *yaml_text(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

int yaml_refuse(const struct yaml_source *source, const yaml_node_t *node, const char *format, ...)
{
    char what[sizeof(source->err->message)];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return error_set(
        source->err, -EINVAL, "%.200s:%zu: %.280s", source->path, node->start_mark.line + 1, what);
}

int yaml_each_pair(
    const struct yaml_source *source, const yaml_node_t *mapping, yaml_pair_fn *take, void *arg)
{
    int r = 0;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         r == 0 && pair < mapping->data.mapping.pairs.top; pair++)
        r = take(arg, yaml_document_get_node(source->document, pair->key),
            yaml_document_get_node(source->document, pair->value));
    return r;
}

int yaml_each_value(const struct yaml_source *source, const yaml_node_t *key, const yaml_node_t *value,
    yaml_pair_fn *take, void *arg)
{
    if (yaml_text(value) != NULL)
        return take(arg, key, value);
    if (value->type != YAML_SEQUENCE_NODE)
        return yaml_refuse(source, value, "a value or a list of values is expected here");
    int r = 0;
    for (const yaml_node_item_t *item = value->data.sequence.items.start;
         r == 0 && item < value->data.sequence.items.top; item++) {
        const yaml_node_t *one = yaml_document_get_node(source->document, *item);
        r = yaml_text(one) != NULL ? take(arg, key, one)
                                   : yaml_refuse(source, one, "a single value is expected here");
    }
    return r;
}

int yaml_set_option(const struct yaml_source *source, struct call *call, const char *verb,
    const yaml_node_t *key, const yaml_node_t *value)
{
    const struct option_row *row = call_find_option(call, yaml_text(key));
    if (row == NULL) {
        const char *near = call_nearest_option(call, yaml_text(key));
        (void)yaml_refuse(source, key, "'%.60s' is not an option of %s", yaml_text(key), verb);
        return near != NULL ? error_hint(source->err, "did you mean %s?", near) : -EINVAL;
    }
    const char *text = call_keep(call, yaml_text(value));
    if (row->argument == NULL && strcmp(text, "false") == 0)
        return 0;
    if (row->argument == NULL && strcmp(text, "true") != 0)
        return yaml_refuse(source, value, "this option must be true or false");
    int r = options_set(call, row, row->argument == NULL ? NULL : text, source->err);
    return r < 0 ? error_wrap(source->err, "%.200s:%zu", source->path, value->start_mark.line + 1) : 0;
}

/* --- documents --- */

static bool is_empty(const yaml_node_t *root)
{
    return root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0;
}

/* One document; *ret_is_last at the end of the text. */
static int read_document(
    yaml_parser_t *parser, struct yaml_source *source, yaml_document_fn *take, void *arg, bool *ret_is_last)
{
    yaml_document_t document;
    if (yaml_parser_load(parser, &document) == 0)
        return error_set(source->err, -EINVAL, "%.200s:%zu: %s", source->path, parser->problem_mark.line + 1,
            yaml_problem_text(parser->problem));
    source->document = &document;
    const yaml_node_t *root = yaml_document_get_root_node(&document);
    *ret_is_last = root == NULL;
    int r = root != NULL && !is_empty(root) ? take(arg, source, root) : 0;
    source->document = NULL;
    yaml_document_delete(&document);
    return r;
}

int yaml_each_document(
    const char *path, const char *text, yaml_document_fn *take, void *arg, struct error *err)
{
    struct yaml_source source = { .path = path, .err = err };
    yaml_parser_t parser = { 0 };
    bool is_last = false;
    int r = 0;
    if (yaml_parser_initialize(&parser) == 0)
        return error_set(err, -ENOMEM, "%.200s: out of memory in the parser", path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    while (r == 0 && !is_last)
        r = read_document(&parser, &source, take, arg, &is_last);
    yaml_parser_delete(&parser);
    return r;
}
