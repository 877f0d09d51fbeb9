/* SPDX-License-Identifier: MIT */
#include "cli/submit/job_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/yaml_options.h"
#include "cli/submit/script_job.h"
#include "cli/submit/submit.h"
#include "cli/submit/submit_check.h"
#include "cli/term/text_file.h"

#define MERGE       "<<"
#define MERGE_DEPTH 8
#define OWN_PREFIX  "x-" // keys for the user's own purposes, for example anchors
#define PAIRS_MAX   4096 // of one document, including merged ones

struct document {
    struct call *call;
    const struct yaml_source *source;
    const yaml_node_t *root, *command, *needs, *name;
    struct plan *plan;
    struct script *script; // that the command runs, if it has option lines, or NULL
    int depth, n_pairs;    // of the document being read
};

bool job_file_is_one(const char *word)
{
    const char *dot = strrchr(word, '.');
    char start[2] = "";
    if (dot == NULL || (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0))
        return false;
    int fd = open(word, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_program = fd >= 0 && pread(fd, start, 2, 0) == 2 && memcmp(start, "#!", 2) == 0;
    if (fd >= 0)
        (void)close(fd);
    return !is_program;
}

/* --- one pair --- */

static const char *option_name(const char *key, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", strcmp(key, "num_gpus") == 0 ? "gpus" : key);
    for (char *p = ret; *p != '\0'; p++)
        if (*p == '_')
            *p = '-';
    return ret;
}

/* True if the option takes NAME=VALUE, for which a mapping is also accepted. */
static bool takes_assignments(const struct option_row *row)
{
    return row->argument != NULL && strncmp(row->argument, "NAME=", 5) == 0;
}

static int set_text(
    struct document *document, const struct option_row *row, const char *text, const yaml_node_t *at)
{
    int r = options_set(document->call, row, call_keep(document->call, text), document->source->err);
    return r < 0 ? error_wrap(
                       document->source->err, "%.200s:%zu", document->source->path, at->start_mark.line + 1)
                 : 0;
}

struct joining {
    struct buffer *out;
    bool has_any;
};

static int join_value(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    struct joining *joining = arg;
    buffer_printf(joining->out, "%s%s", joining->has_any ? "," : "", yaml_text(value));
    joining->has_any = true;
    return 0;
}

struct assigning {
    struct document *document;
    const struct option_row *row;
};

static int assign(void *arg, const yaml_node_t *name, const yaml_node_t *value)
{
    const struct assigning *assigning = arg;
    const struct yaml_source *source = assigning->document->source;
    _cleanup_buffer_ struct buffer text = { 0 };
    struct joining joining = { .out = &text };
    if (yaml_text(name) == NULL)
        return yaml_refuse(source, name, "the name of a variable is expected here");
    buffer_printf(&text, "%s=", yaml_text(name));
    int r = yaml_each_value(source, name, value, join_value, &joining);
    return r < 0 ? r : set_text(assigning->document, assigning->row, buffer_text(&text), value);
}

static int set_flag(struct document *document, const struct option_row *row, const yaml_node_t *value)
{
    const char *text = yaml_text(value);
    if (text != NULL && strcmp(text, "false") == 0)
        return 0;
    if (text == NULL || strcmp(text, "true") != 0)
        return yaml_refuse(document->source, value, "this option must be true or false");
    int r = options_set(document->call, row, NULL, document->source->err);
    return r < 0 ? error_wrap(document->source->err, "%.200s:%zu", document->source->path,
                       value->start_mark.line + 1)
                 : 0;
}

struct setting {
    struct document *document;
    const struct option_row *row;
};

static int set_value(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    const struct setting *setting = arg;
    return set_text(setting->document, setting->row, yaml_text(value), value);
}

/* Options of the call itself, such as --json, are not part of the job. */
static bool is_of_call(const struct option_row *row)
{
    for (const struct option_row *other = call_global_rows; other->name != NULL; other++)
        if (other == row)
            return true;
    return false;
}

static int refuse_key(const struct document *document, const yaml_node_t *key, const char *name)
{
    const char *near =
        call_find_option(document->call, name) == NULL ? call_nearest_option(document->call, name) : NULL;
    (void)yaml_refuse(document->source, key, "'%.60s' is not a key of a job", yaml_text(key));
    if (strcmp(name, "jobs") == 0)
        return error_hint(document->source->err, "each job is a document of its own; --- separates them");
    if (strcmp(name, "commands") == 0 || strcmp(name, "cmd") == 0)
        near = "command";
    return near != NULL ? error_hint(document->source->err, "did you mean %s?", near) : -EINVAL;
}

static int set_option(struct document *document, const yaml_node_t *key, const yaml_node_t *value)
{
    char name[64];
    const struct option_row *row =
        call_find_option(document->call, option_name(yaml_text(key), name, sizeof(name)));
    struct assigning assigning = { .document = document, .row = row };
    struct setting setting = { .document = document, .row = row };
    if (row == NULL || is_of_call(row))
        return refuse_key(document, key, name);
    if (row->argument == NULL)
        return set_flag(document, row, value);
    if (takes_assignments(row) && value->type == YAML_MAPPING_NODE)
        return yaml_each_pair(document->source, value, assign, &assigning);
    return yaml_each_value(document->source, key, value, set_value, &setting);
}

/* --- one document --- */

static int read_mapping(struct document *document, const yaml_node_t *mapping);

static int merge(struct document *document, const yaml_node_t *value)
{
    const struct yaml_source *source = document->source;
    if (value->type == YAML_MAPPING_NODE)
        return read_mapping(document, value);
    if (value->type != YAML_SEQUENCE_NODE)
        return yaml_refuse(source, value, "<< takes a mapping or a list of mappings");
    /* The first of several values takes precedence. */
    int r = 0;
    for (const yaml_node_item_t *item = value->data.sequence.items.top;
         r == 0 && item > value->data.sequence.items.start; item--) {
        const yaml_node_t *one = yaml_document_get_node(source->document, item[-1]);
        r = one->type == YAML_MAPPING_NODE ? read_mapping(document, one)
                                           : yaml_refuse(source, one, "<< takes mappings alone");
    }
    return r;
}

static int read_merge(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    struct document *document = arg;
    if (yaml_text(key) == NULL)
        return yaml_refuse(document->source, key, "the name of an option is expected here");
    if (++document->n_pairs > PAIRS_MAX)
        return yaml_refuse(document->source, key, "more than %d keys are merged into one job", PAIRS_MAX);
    return strcmp(yaml_text(key), MERGE) == 0 ? merge(document, value) : 0;
}

static int read_pair(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    struct document *document = arg;
    const struct {
        const char *name;
        const yaml_node_t **place;
    } own[] = { { "command", &document->command }, { "needs", &document->needs } };
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (strcmp(yaml_text(key), own[i].name) == 0) {
            *own[i].place = value;
            return 0;
        }
    if (strcmp(yaml_text(key), MERGE) == 0 || strncmp(yaml_text(key), OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
        return 0;
    if (strcmp(yaml_text(key), "name") == 0)
        document->name = value;
    return set_option(document, key, value);
}

/* Reads merged mappings first, then its own pairs, which take precedence. */
static int read_mapping(struct document *document, const yaml_node_t *mapping)
{
    if (document->depth >= MERGE_DEPTH)
        return yaml_refuse(document->source, mapping, "<< is nested deeper than %d levels", MERGE_DEPTH);
    document->depth++;
    int r = yaml_each_pair(document->source, mapping, read_merge, document);
    if (r == 0)
        r = yaml_each_pair(document->source, mapping, read_pair, document);
    document->depth--;
    return r;
}

static int apply(struct call *call, void *arg, struct error *err)
{
    struct document *document = arg;
    int r = document->script != NULL ? script_apply(call, document->script, err) : 0;
    document->n_pairs = 0;
    call->layer = document->source->path;
    if (r == 0)
        r = read_mapping(document, document->root);
    call->layer = NULL;
    return r;
}

static int add_word(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    strings_add(arg, yaml_text(value));
    return 0;
}

static int read_words(const struct document *document, struct strings *words)
{
    const struct yaml_source *source = document->source;
    if (document->command == NULL)
        return yaml_refuse(source, document->root, "this job has no command");
    int r = yaml_each_value(source, document->command, document->command, add_word, words);
    if (r == 0 && (words->count == 0 || words->items[0][0] == '\0'))
        return yaml_refuse(source, document->command, "the command is empty");
    return r;
}

static bool is_list(const struct document *document)
{
    return document->command->type == YAML_SEQUENCE_NODE;
}

/* If the command is a script with option lines, their options are read again, overridden by the keys of the
 * document. `words` are then those of the command. */
static int open_script(
    struct document *document, struct script *script, struct strings *words, struct error *err)
{
    _cleanup_strings_ struct strings split = { 0 };
    bool is_one = is_list(document) ? script_open(script, words->items[0]) && script->has_options
                                    : script_job_open(script, words->items[0], &split);
    if (!is_one)
        return 0;
    if (!is_list(document)) {
        strings_clear(words);
        *words = split;
        split = (struct strings){ 0 };
    }
    document->script = script;
    return call_read_again(document->call, apply, document, err);
}

static int make_request(struct document *document, struct strings *words, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *command = NULL;
    struct call *call = document->call;
    unsigned *left_out = &document->plan->left_out;
    if (document->script != NULL)
        return script_job_make(call, document->script, (int)words->count, words->items, left_out, ret, err);
    int r = is_list(document) ? submit_words((int)words->count, words->items, &command, err)
                              : submit_command(1, words->items, &command, err);
    if (r < 0)
        return r;
    submit_check(call, command);
    return submit_request(call, command, ret, left_out, err);
}

/* --- needs --- */

static const char *kind_of(const char *text)
{
    static const char *const kinds[] = { "ok", "any", "fail", NULL };
    size_t i = 0;
    while (kinds[i] != NULL && strcmp(kinds[i], text) != 0)
        i++;
    return kinds[i];
}

static int add_need(void *arg, const yaml_node_t *name, const yaml_node_t *kind)
{
    const struct document *document = arg;
    const char *word = kind == NULL ? "ok" : yaml_text(kind) == NULL ? NULL : kind_of(yaml_text(kind));
    if (yaml_text(name) == NULL)
        return yaml_refuse(document->source, name, "the name of a job is expected here");
    if (word == NULL)
        return yaml_refuse(document->source, kind, "a need must be ok, any or fail");
    _cleanup_free_ char *origin = xasprintf("%s:%zu", document->source->path, name->start_mark.line + 1);
    plan_add_need(document->plan, yaml_text(name), word, origin);
    return 0;
}

static int add_plain_need(void *arg, const yaml_node_t *key, const yaml_node_t *value)
{
    return add_need(arg, value, NULL);
}

static int add_needs(struct document *document)
{
    const yaml_node_t *needs = document->needs;
    if (needs == NULL)
        return 0;
    if (needs->type == YAML_MAPPING_NODE)
        return yaml_each_pair(document->source, needs, add_need, document);
    return yaml_each_value(document->source, needs, needs, add_plain_need, document);
}

/* --- the file --- */

struct reading {
    struct call *call;
    struct plan *plan;
};

static int make_unit(struct document *document, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    _cleanup_script_ struct script script = { 0 };
    _cleanup_strings_ struct strings words = { 0 };
    const struct submit_options *options = document->call->options;
    const char *name = document->name != NULL ? yaml_text(document->name) : NULL;
    _cleanup_free_ char *origin =
        xasprintf("%s:%zu", document->source->path, document->root->start_mark.line + 1);
    int r = read_words(document, &words);
    if (r == 0)
        r = open_script(document, &script, &words, err);
    if (r < 0)
        return r;
    r = make_request(document, &words, &request, err);
    if (r == 0)
        r = plan_add(document->plan, origin, name, request, &options->sweeps, err);
    return r < 0 ? error_wrap(err, "%s", origin) : add_needs(document);
}

static int read_document(void *arg, struct yaml_source *source, const yaml_node_t *root)
{
    const struct reading *reading = arg;
    struct document document = {
        .call = reading->call, .plan = reading->plan, .source = source, .root = root
    };
    if (root->type != YAML_MAPPING_NODE)
        return yaml_refuse(source, root, "a job must be a mapping of keys to values");
    int r = call_read_again(reading->call, apply, &document, source->err);
    return r < 0 ? r : make_unit(&document, source->err);
}

int job_file_read(struct call *call, const char *path, struct plan *plan, struct error *err)
{
    _cleanup_text_file_ struct text_file file = { 0 };
    struct reading reading = { .call = call, .plan = plan };
    int r = text_file_open(&file, path, JOB_FILE_MAX, err);
    if (r == 0)
        r = yaml_each_document(path, file.text, read_document, &reading, err);
    if (r == 0 && plan->count == 0)
        return error_set(err, -EINVAL, "%.200s contains no job", path);
    return r;
}
