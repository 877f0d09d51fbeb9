/* SPDX-License-Identifier: MIT */
#include "cli/defaults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/submit.h"

#define SYSTEM_FILE "/etc/mgpu/client.yaml"
#define FILE_MAX    (1L << 20) // bytes
#define EVERY_VERB  "all"
#define SUBMIT      "submit"

struct reader {
    const char *path;
    yaml_document_t *document;
    struct error *err;
    /* What to do with one value. */
    int (*take)(struct reader *reader, const char *verb, const yaml_node_t *key, const yaml_node_t *value);
    struct call *call;                      // of defaults_apply
    const struct option_row *const *tables; // likewise
    json_t *settings;                       // of defaults_list
};

static const char *text_of(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static int refuse(const struct reader *reader, const yaml_node_t *node, const char *what)
{
    return error_set(reader->err, -EINVAL, "%s:%zu: %s", reader->path, node->start_mark.line + 1, what);
}

/* --- one option --- */

static const struct option_row *find_row(const struct option_row *const *tables, const char *name)
{
    for (size_t i = 0; tables[i] != NULL; i++)
        for (const struct option_row *row = tables[i]; row->name != NULL; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

static int refuse_key(const struct reader *reader, const char *verb, const yaml_node_t *key)
{
    const char *names[256] = { NULL };
    size_t count = 0;
    for (size_t i = 0; reader->tables[i] != NULL; i++)
        for (const struct option_row *row = reader->tables[i]; row->name != NULL && count < 255; row++)
            names[count++] = row->name;
    const char *near = text_nearest(text_of(key), names);
    (void)error_set(reader->err, -EINVAL, "%s:%zu: '%.60s' is no option of %s", reader->path,
        key->start_mark.line + 1, text_of(key), verb);
    return near != NULL ? error_hint(reader->err, "did you mean %s?", near) : -EINVAL;
}

static int set_option(
    struct reader *reader, const char *verb, const yaml_node_t *key, const yaml_node_t *value)
{
    const struct option_row *row = find_row(reader->tables, text_of(key));
    if (row == NULL)
        return refuse_key(reader, verb, key);
    strings_add(&reader->call->defaults, text_of(value));
    const char *text = reader->call->defaults.items[reader->call->defaults.count - 1];
    if (row->argument == NULL && strcmp(text, "false") == 0)
        return 0;
    if (row->argument == NULL && strcmp(text, "true") != 0)
        return refuse(reader, value, "this option is true or false");
    int r = row->set(reader->call, row->argument == NULL ? NULL : text, reader->err);
    return r < 0 ? error_wrap(reader->err, "%s:%zu", reader->path, value->start_mark.line + 1) : 0;
}

/* Does a section of that name speak of the command that runs? */
static bool is_about(const struct call *call, const char *verb)
{
    const struct command *command = call->command;
    if (strcmp(verb, EVERY_VERB) == 0 || strcmp(verb, command->name) == 0)
        return true;
    for (size_t i = 0; strcmp(verb, SUBMIT) == 0 && i < COMMAND_TABLES; i++)
        if (command->tables[i] == submit_rows)
            return true;
    return false;
}

static int apply_one(
    struct reader *reader, const char *verb, const yaml_node_t *key, const yaml_node_t *value)
{
    return is_about(reader->call, verb) ? set_option(reader, verb, key, value) : 0;
}

static int list_one(struct reader *reader, const char *verb, const yaml_node_t *key, const yaml_node_t *value)
{
    _cleanup_free_ char *name = xasprintf("%s.%s", verb, text_of(key));
    _cleanup_free_ char *origin = xasprintf("%s:%zu", reader->path, key->start_mark.line + 1);
    json_t *row = json_pack(
        "{s:s,s:s,s:s,s:b,s:n}", "key", name, "value", text_of(value), "origin", origin, "live", 1, "help");
    return json_array_append_new(reader->settings, row) < 0 ? refuse(reader, value, "this is not UTF-8") : 0;
}

/* --- files --- */

/* A value, or a list of values for an option that may be repeated. */
static int read_value(
    struct reader *reader, const char *verb, const yaml_node_t *key, const yaml_node_t *value)
{
    if (text_of(key) == NULL)
        return refuse(reader, key, "the name of an option belongs here");
    if (text_of(value) != NULL)
        return reader->take(reader, verb, key, value);
    if (value->type != YAML_SEQUENCE_NODE)
        return refuse(reader, value, "a value or a list of values belongs here");
    int r = 0;
    for (const yaml_node_item_t *item = value->data.sequence.items.start;
         r == 0 && item < value->data.sequence.items.top; item++) {
        const yaml_node_t *one = yaml_document_get_node(reader->document, *item);
        r = text_of(one) != NULL ? reader->take(reader, verb, key, one)
                                 : refuse(reader, one, "a single value belongs here");
    }
    return r;
}

static int read_verb(struct reader *reader, const yaml_node_t *verb, const yaml_node_t *options)
{
    if (text_of(verb) == NULL ||
        (strcmp(text_of(verb), EVERY_VERB) != 0 && commands_find(text_of(verb)) == NULL))
        return refuse(reader, verb, "this is no command of mgpu, nor \"all\"");
    if (options->type != YAML_MAPPING_NODE)
        return refuse(reader, options, "a mapping of options to values belongs here");
    int r = 0;
    for (const yaml_node_pair_t *pair = options->data.mapping.pairs.start;
         r == 0 && pair < options->data.mapping.pairs.top; pair++)
        r = read_value(reader, text_of(verb), yaml_document_get_node(reader->document, pair->key),
            yaml_document_get_node(reader->document, pair->value));
    return r;
}

static int read_document(struct reader *reader)
{
    const yaml_node_t *root = yaml_document_get_root_node(reader->document);
    if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return refuse(reader, root, "the file must be a mapping of commands to options");
    int r = 0;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         r == 0 && pair < root->data.mapping.pairs.top; pair++)
        r = read_verb(reader, yaml_document_get_node(reader->document, pair->key),
            yaml_document_get_node(reader->document, pair->value));
    return r;
}

static int parse(struct reader *reader, FILE *file)
{
    struct stat st;
    yaml_parser_t parser = { 0 };
    yaml_document_t document;
    if (fstat(fileno(file), &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return error_set(reader->err, -EINVAL, "%s is no file of at most %ld bytes", reader->path, FILE_MAX);
    if (yaml_parser_initialize(&parser) == 0)
        return error_set(reader->err, -ENOMEM, "%s: no memory for the parser", reader->path);
    yaml_parser_set_input_file(&parser, file);
    int r = yaml_parser_load(&parser, &document) != 0
                ? 0
                : error_set(reader->err, -EINVAL, "%s:%zu: %s", reader->path, parser.problem_mark.line + 1,
                      parser.problem != NULL ? parser.problem : "not YAML");
    if (r == 0) {
        reader->document = &document;
        r = read_document(reader);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return r;
}

/* A file that is not there says nothing; neither does one below a HOME that is still another user's. */
static int read_file(struct reader *reader, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return 0;
    if (file == NULL)
        return error_set_errno(reader->err, -errno, "cannot read %s", path);
    reader->path = path;
    int r = parse(reader, file);
    (void)fclose(file);
    return r;
}

static char *user_file(void)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (base != NULL && base[0] == '/')
        return xasprintf("%s/mgpu/client.yaml", base);
    return home != NULL && home[0] == '/' ? xasprintf("%s/.config/mgpu/client.yaml", home) : NULL;
}

static int read_files(struct reader *reader)
{
    _cleanup_free_ char *user = user_file();
    int r = read_file(reader, SYSTEM_FILE);
    return r == 0 && user != NULL ? read_file(reader, user) : r;
}

int defaults_apply(struct call *call, const struct option_row *const *tables, struct error *err)
{
    struct reader reader = { .err = err, .take = apply_one, .call = call, .tables = tables };
    return read_files(&reader);
}

int defaults_list(json_t *settings, struct error *err)
{
    struct reader reader = { .err = err, .take = list_one, .settings = settings };
    return read_files(&reader);
}
