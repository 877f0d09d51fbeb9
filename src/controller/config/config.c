/* SPDX-License-Identifier: MIT */
/*
 * A configuration file: YAML, one mapping of keys to values. Five keys contain mappings
 * themselves: "users", "groups" (limits of individual users or groups), "departments", "partitions" and
 * "roles". An empty file is valid. A key may occur once in a file; of several files the last one wins.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "base/memory.h"
#include "base/strings.h"
#include "base/yaml_problem.h"
#include "controller/config/partitions.h"
#include "controller/config/roles.h"
#include "controller/config/settings.h"
#include "controller/config/settings_sched.h"

#define CONFIG_MAX (1L << 20) // bytes per file

struct reader {
    const char *path;
    yaml_document_t *document;
    struct controller_options *options;
    struct error *err;
};

typedef int pair_fn(struct reader *reader, const yaml_node_t *key, const yaml_node_t *value, const void *arg);

static void close_file(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file);
}

static const char *text_of(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static size_t line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

/* Puts the position in front of the error's sentence. */
static int at(const struct reader *reader, const yaml_node_t *node, int r)
{
    return r < 0 ? error_wrap(reader->err, "%s:%zu", reader->path, line_of(node)) : r;
}

static void note(const struct reader *reader, const yaml_node_t *node, const char *key, const char *value)
{
    _cleanup_free_ char *origin = xasprintf("%s:%zu", reader->path, line_of(node));
    settings_note(reader->options, key, value, origin);
}

/* --- mappings --- */

static int refuse_twice(const struct reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
    for (const yaml_node_pair_t *other = mapping->data.mapping.pairs.start; other < pair; other++) {
        const yaml_node_t *earlier = yaml_document_get_node(reader->document, other->key);
        if (text_equal(text_of(earlier), text_of(key)))
            return at(reader, key,
                error_set(reader->err, -EINVAL, "'%.60s' is already set in line %zu", text_of(key),
                    line_of(earlier)));
    }
    return 0;
}

static int each_pair(struct reader *reader, const yaml_node_t *mapping, pair_fn *read, const void *arg)
{
    int r = 0;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         r == 0 && pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
        if (text_of(key) == NULL)
            return at(reader, key, error_set(reader->err, -EINVAL, "a key must be a word"));
        r = refuse_twice(reader, mapping, pair);
        if (r == 0)
            r = read(reader, key, yaml_document_get_node(reader->document, pair->value), arg);
    }
    return r;
}

/* A user whose account was removed must not keep mgpud from starting: the entry is ignored with a warning. */
static int pass_over(struct reader *reader, const yaml_node_t *node)
{
    strings_take(&reader->options->warnings,
        xasprintf("%s:%zu: %s: its settings are ignored until the files are read again", reader->path,
            line_of(node), reader->err->message));
    *reader->err = (struct error){ 0 };
    return 0;
}

/* --- users, groups and departments: names to their limits and shares --- */

struct account_name {
    enum account_kind kind;
    const char *name;
};

static int read_limit(
    struct reader *reader, const yaml_node_t *key, const yaml_node_t *value, const void *arg)
{
    static const char *const sections[] = { "users", "groups", "departments" };
    const struct account_name *account = arg;
    if (text_of(value) == NULL)
        return at(reader, value, error_set(reader->err, -EINVAL, "a limit must be a single value"));
    int r = settings_set_account(
        reader->options, account->kind, account->name, text_of(key), text_of(value), reader->err);
    if (r < 0)
        return r == -ENOENT ? r : at(reader, key, r); // reported with the position of the name
    _cleanup_free_ char *name = xasprintf("%s.%s.%s", sections[account->kind], account->name, text_of(key));
    note(reader, key, name, text_of(value));
    return 0;
}

static int read_account(
    struct reader *reader, const yaml_node_t *key, const yaml_node_t *value, const void *kind)
{
    struct account_name account = { .kind = *(const enum account_kind *)kind, .name = text_of(key) };
    if (value->type != YAML_MAPPING_NODE)
        return at(reader, value,
            error_set(reader->err, -EINVAL, "'%.60s' requires a mapping of limits", account.name));
    int r = each_pair(reader, value, read_limit, &account);
    return r == -ENOENT ? pass_over(reader, key) : r;
}

/* --- partitions: names to their nodes, users and limits --- */

/* Joins a list: [ada, "group:ml"] becomes "ada,group:ml". The caller frees it; NULL if it is not a list. */
static char *text_of_list(const struct reader *reader, const yaml_node_t *value)
{
    struct buffer out = { 0 };
    bool is_good = value->type == YAML_SEQUENCE_NODE;
    if (text_of(value) != NULL)
        return xstrdup(text_of(value));
    for (const yaml_node_item_t *item = is_good ? value->data.sequence.items.start : NULL;
         is_good && item < value->data.sequence.items.top; item++) {
        const char *word = text_of(yaml_document_get_node(reader->document, *item));
        is_good = word != NULL;
        buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", word != NULL ? word : "");
    }
    if (is_good)
        return buffer_take(&out);
    buffer_clear(&out);
    return NULL;
}

static int read_partition_key(
    struct reader *reader, const yaml_node_t *key, const yaml_node_t *value, const void *name)
{
    _cleanup_free_ char *text = text_of_list(reader, value);
    if (text == NULL)
        return at(reader, value, error_set(reader->err, -EINVAL, "a value or a list is expected here"));
    int r = partitions_set(reader->options, name, text_of(key), text, reader->err);
    if (r == -ENOENT)
        r = pass_over(reader, value);
    if (r < 0)
        return at(reader, key, r);
    _cleanup_free_ char *setting = xasprintf("partitions.%s.%s", (const char *)name, text_of(key));
    note(reader, value, setting, text);
    return 0;
}

static int read_partition(
    struct reader *reader, const yaml_node_t *key, const yaml_node_t *value, const void *arg)
{
    if (value->type != YAML_MAPPING_NODE)
        return at(reader, value,
            error_set(
                reader->err, -EINVAL, "'%.60s' requires a mapping, such as nodes: gpu[1-4]", text_of(key)));
    return each_pair(reader, value, read_partition_key, text_of(key));
}

/* --- roles: names of roles to lists of users and groups --- */

static int add_to_role(struct reader *reader, const yaml_node_t *who, enum role role)
{
    if (text_of(who) == NULL)
        return at(reader, who, error_set(reader->err, -EINVAL, "a user or group:NAME is expected here"));
    int r = roles_add(&reader->options->roles, text_of(who), role, reader->err);
    if (r < 0)
        return r == -ENOENT ? pass_over(reader, who) : at(reader, who, r);
    _cleanup_free_ char *name = xasprintf("roles.%s", text_of(who));
    note(reader, who, name, role_name(role));
    return 0;
}

/* In "others: viewer", key and value are exchanged. */
static int read_others(struct reader *reader, const yaml_node_t *value)
{
    enum role role = text_of(value) != NULL ? role_find(text_of(value)) : ROLES;
    if (role == ROLES)
        return at(reader, value, error_set(reader->err, -EINVAL, "others: viewer, user, operator or admin"));
    int r = roles_add(&reader->options->roles, "others", role, reader->err);
    note(reader, value, "roles.others", role_name(role));
    return r;
}

static int read_role(struct reader *reader, const yaml_node_t *key, const yaml_node_t *value, const void *arg)
{
    enum role role = role_find(text_of(key));
    if (strcmp(text_of(key), "others") == 0)
        return read_others(reader, value);
    if (role == ROLES) {
        (void)error_set(reader->err, -EINVAL, "unknown role '%.40s'", text_of(key));
        (void)error_hint(
            reader->err, "use viewer, user, operator or admin; others: ROLE applies to all other users");
        return at(reader, key, -EINVAL);
    }
    if (value->type == YAML_SCALAR_NODE)
        return add_to_role(reader, value, role);
    if (value->type != YAML_SEQUENCE_NODE)
        return at(
            reader, value, error_set(reader->err, -EINVAL, "a list of users and groups is expected here"));
    int r = 0;
    for (const yaml_node_item_t *item = value->data.sequence.items.start;
         r == 0 && item < value->data.sequence.items.top; item++)
        r = add_to_role(reader, yaml_document_get_node(reader->document, *item), role);
    return r;
}

/* --- the whole --- */

static int read_pair(struct reader *reader, const yaml_node_t *key, const yaml_node_t *value, const void *arg)
{
    static const enum account_kind user = ACCOUNT_USER, group = ACCOUNT_GROUP,
                                   department = ACCOUNT_DEPARTMENT;
    static const struct {
        const char *key;
        pair_fn *read;
        const void *arg;
    } sections[] = {
        { "users", read_account, &user },
        { "groups", read_account, &group },
        { "departments", read_account, &department },
        { "partitions", read_partition, NULL },
        { "roles", read_role, NULL },
    };
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (strcmp(sections[i].key, text_of(key)) != 0)
            continue;
        if (value->type != YAML_MAPPING_NODE)
            return at(
                reader, key, error_set(reader->err, -EINVAL, "'%s' must be a mapping", sections[i].key));
        return each_pair(reader, value, sections[i].read, sections[i].arg);
    }
    if (text_of(value) == NULL)
        return at(reader, key, error_set(reader->err, -EINVAL, "a key and a single value are expected here"));
    _cleanup_free_ char *origin = xasprintf("%s:%zu", reader->path, line_of(key));
    return at(reader, key, settings_set(reader->options, text_of(key), text_of(value), origin, reader->err));
}

static int read_document(struct reader *reader)
{
    const yaml_node_t *root = yaml_document_get_root_node(reader->document);
    if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return at(
            reader, root, error_set(reader->err, -EINVAL, "the file must be a mapping of keys to values"));
    return each_pair(reader, root, read_pair, NULL);
}

static int check_file(FILE *file, const char *path, struct error *err)
{
    struct stat st;
    if (fstat(fileno(file), &st) < 0)
        return error_set_errno(err, -errno, "cannot read %s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, -EINVAL, "%s is not a regular file", path);
    if (st.st_size > CONFIG_MAX)
        return error_set(
            err, -EFBIG, "%s has %lld bytes, more than %ld", path, (long long)st.st_size, CONFIG_MAX);
    return 0;
}

static int load(yaml_parser_t *parser, const char *path, yaml_document_t *ret, struct error *err)
{
    if (yaml_parser_load(parser, ret) != 0)
        return 0;
    return error_set(
        err, -EINVAL, "%s:%zu: %s", path, parser->problem_mark.line + 1, yaml_problem_text(parser->problem));
}

/* A second document after "---" would be ignored. */
static int check_end(yaml_parser_t *parser, const char *path, struct error *err)
{
    yaml_document_t more;
    int r = load(parser, path, &more, err);
    if (r < 0)
        return r;
    const yaml_node_t *root = yaml_document_get_root_node(&more);
    if (root != NULL)
        r = error_set(err, -EINVAL, "%s:%zu: the file contains more than one document", path, line_of(root));
    yaml_document_delete(&more);
    return r;
}

static int read_parsed(
    yaml_parser_t *parser, const char *path, struct controller_options *options, struct error *err)
{
    yaml_document_t document;
    int r = load(parser, path, &document, err);
    if (r < 0)
        return r;
    struct reader reader = { .path = path, .document = &document, .options = options, .err = err };
    bool is_empty = yaml_document_get_root_node(&document) == NULL;
    r = read_document(&reader);
    yaml_document_delete(&document);
    return r == 0 && !is_empty ? check_end(parser, path, err) : r;
}

int config_read(const char *path, struct controller_options *options, struct error *err)
{
    struct error local;
    err = err != NULL ? err : &local;
    _cleanup_(close_file) FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, -errno, "cannot read %s", path);
    int r = check_file(file, path, err);
    if (r < 0)
        return r;
    _cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };
    if (yaml_parser_initialize(&parser) == 0)
        return error_set(err, -ENOMEM, "%s: out of memory in the parser", path);
    yaml_parser_set_input_file(&parser, file);
    r = read_parsed(&parser, path, options, err);
    if (r == 0)
        settings_note_file(options, path);
    return r;
}
