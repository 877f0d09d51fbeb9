/* SPDX-License-Identifier: MIT */
#include "cli/options/defaults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/options/commands.h"
#include "cli/options/yaml_options.h"
#include "cli/term/text_file.h"

#define SYSTEM_FILE "/etc/mgpu/client.yaml"
#define FILE_MAX    (1U << 20) // bytes
#define EVERY_VERB  "all"
#define SUBMIT      "submit"

struct reader {
    struct yaml_source source;
    const char *verb; // whose options are being parsed
    /* What to do with one value. */
    int (*take)(struct reader *reader, const yaml_node_t *key, const yaml_node_t *value);
    struct call *call; // of defaults_apply
    json_t *settings;  // of defaults_list
};

/* True if a section with this name applies to the running command. */
static bool is_about(const struct call *call, const char *verb)
{
    const struct command *command = call->command;
    if (strcmp(verb, EVERY_VERB) == 0 || strcmp(verb, command->name) == 0)
        return true;
    return strcmp(verb, SUBMIT) == 0 && command->makes_jobs;
}

static int apply_one(struct reader *reader, const yaml_node_t *key, const yaml_node_t *value)
{
    if (!is_about(reader->call, reader->verb))
        return 0;
    return yaml_set_option(&reader->source, reader->call, reader->verb, key, value);
}

static int list_one(struct reader *reader, const yaml_node_t *key, const yaml_node_t *value)
{
    const struct yaml_source *source = &reader->source;
    _cleanup_free_ char *name = xasprintf("%s.%s", reader->verb, yaml_text(key));
    _cleanup_free_ char *origin = xasprintf("%s:%zu", source->path, key->start_mark.line + 1);
    json_t *row = json_pack(
        "{s:s,s:s,s:s,s:b,s:n}", "key", name, "value", yaml_text(value), "origin", origin, "live", 1, "help");
    if (json_array_append_new(reader->settings, row) < 0)
        return yaml_refuse(source, value, "this is not UTF-8");
    return 0;
}

/* --- files --- */

static int take_value(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    struct reader *reader = arg;
    return reader->take(reader, key, value);
}

static int read_option(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    struct reader *reader = arg;
    if (yaml_text(key) == NULL)
        return yaml_refuse(&reader->source, key, "the name of an option is expected here");
    return yaml_each_value(&reader->source, key, value, take_value, reader);
}

static int read_verb(void *arg, const yaml_node_t *verb, const yaml_node_t *options)
{
    struct reader *reader = arg;
    reader->verb = yaml_text(verb);
    if (reader->verb == NULL ||
        (strcmp(reader->verb, EVERY_VERB) != 0 && commands_find(reader->verb) == NULL))
        return yaml_refuse(&reader->source, verb, "this is neither a command of mgpu nor \"all\"");
    if (options->type != YAML_MAPPING_NODE)
        return yaml_refuse(&reader->source, options, "a mapping of options to values is expected here");
    return yaml_each_pair(&reader->source, options, read_option, reader);
}

static int read_document(void *arg, struct yaml_source *source, const yaml_node_t *root)
{
    struct reader *reader = arg;
    reader->source = *source;
    if (root->type != YAML_MAPPING_NODE)
        return yaml_refuse(source, root, "the file must be a mapping of commands to options");
    return yaml_each_pair(source, root, read_verb, reader);
}

/* A missing file has no settings; neither has one below a HOME that still belongs to another user. */
static int read_file(struct reader *reader, const char *path, struct error *err)
{
    _cleanup_text_file_ struct text_file file = { 0 };
    if (access(path, R_OK) < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return 0;
    int r = text_file_open(&file, path, FILE_MAX, err);
    return r < 0 ? r : yaml_each_document(path, file.text, read_document, reader, err);
}

static char *user_file(void)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (base != NULL && base[0] == '/')
        return xasprintf("%s/mgpu/client.yaml", base);
    return home != NULL && home[0] == '/' ? xasprintf("%s/.config/mgpu/client.yaml", home) : NULL;
}

static int read_files(struct reader *reader, struct error *err)
{
    _cleanup_free_ char *user = user_file();
    int r = read_file(reader, SYSTEM_FILE, err);
    return r == 0 && user != NULL ? read_file(reader, user, err) : r;
}

int defaults_apply(struct call *call, struct error *err)
{
    struct reader reader = { .take = apply_one, .call = call };
    return read_files(&reader, err);
}

int defaults_list(json_t *settings, struct error *err)
{
    struct reader reader = { .take = list_one, .settings = settings };
    return read_files(&reader, err);
}
