/* SPDX-License-Identifier: MIT */
/* From the words after the verb to its function: options are stored in the verb's struct, operands in
 * argv. */
#include "cli/options/call.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/remote.h"
#include "cli/options/defaults.h"
#include "cli/options/foreign_words.h"
#include "cli/options/help.h"
#include "cli/options/talk.h"

#define ACTIONS_MAX 8

static int set_server(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    int r = remote_check("--server", value, err);
    return r < 0 ? r : option_text("--server", value, &call->host, err);
}

static int set_color(void *target, const char *value, struct error *err)
{
    static const struct {
        const char *word;
        enum color_when when;
    } words[] = { { "auto", COLOR_AUTO }, { "always", COLOR_ALWAYS }, { "never", COLOR_NEVER } };
    struct call *call = target;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(value, words[i].word) == 0) {
            call->color = words[i].when;
            return 0;
        }
    return error_set(err, -EINVAL, "--color: '%.60s' is none of auto, always and never", value);
}

static int set_utc(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    call->times = TIME_ZULU;
    return 0;
}

static int set_iso(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    call->times = TIME_ISO;
    return 0;
}

const struct option_row call_global_rows[] = {
    { 0, "socket", "PATH",
        "socket of mgpud, or local http://HOST:PORT (default: MGPU_SOCKET, or the usual places)",
        OPTION_VALUE(text, struct call, socket) },
    { 0, "server", "https://HOST:PORT#PIN", "mgpud on another machine (default: MGPU_HOST)", set_server },
    { 0, "json", NULL, "print the server's JSON", OPTION_VALUE(flag, struct call, is_json) },
    { 0, "color", "WHEN", "auto, always or never", set_color },
    { 0, "utc", NULL, "show times in UTC", set_utc },
    { 0, "iso", NULL, "show times as 2026-11-21T14:20:05+0100", set_iso },
    { 'q', "quiet", NULL, "print errors only", OPTION_VALUE(flag, struct call, is_quiet) },
    { 'h', "help", NULL, "show this help", OPTION_VALUE(flag, struct call, is_help) },
    { 0 },
};

const struct option_row call_list_rows[] = {
    { 'o', "output", "FORMAT", "json, jsonl, csv, wide, columns such as id,state, or help",
        OPTION_VALUE(word, struct call, list.output) },
    { 'H', "no-header", NULL, "omit the header", OPTION_VALUE(flag, struct call, list.is_headless) },
    { 0, "sort", "COLUMNS", "sort by these columns; -column reverses the order",
        OPTION_VALUE(word, struct call, list.sort) },
    { 0 },
};

/* Errors of the verb itself: usage and the daemon alike. */
static int report(const struct call *call, const struct command *command, const struct error *err)
{
    (void)fflush(stdout);
    talk_error(command->name[0] == '\0' ? NULL : command->name, err);
    if (err->code == -EINTR)
        return EXIT_SIGNAL_BASE + SIGINT;
    return command->is_job_status ? EXIT_SELF : exit_code_of_error(err->code);
}

/* Hint where the options of a verb are documented, under the name of the running program. */
static int hint_help(const struct command *command, struct error *err)
{
    if (strcmp(talk_program(), "mgpu") == 0)
        return error_hint(err, "mgpu help %s", command->name);
    _cleanup_free_ char *verb = talk_verb(command->name);
    return error_hint(err, "%s%s --help", talk_program(), verb);
}

#define TABLES_MAX (COMMAND_TABLES + 2)
#define NAMES_MAX  256

static void list_tables(const struct command *command, const struct option_row **tables)
{
    size_t count = 0;
    for (size_t i = 0; i < COMMAND_TABLES && command->tables[i] != NULL; i++)
        tables[count++] = command->tables[i];
    tables[count] = call_global_rows;
}

const struct option_row *call_find_option(const struct call *call, const char *name)
{
    const struct option_row *tables[TABLES_MAX] = { 0 };
    list_tables(call->command, tables);
    for (size_t i = 0; tables[i] != NULL; i++)
        for (const struct option_row *row = tables[i]; row->name != NULL; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

const char *call_nearest_option(const struct call *call, const char *name)
{
    const struct option_row *tables[TABLES_MAX] = { 0 };
    const char *names[NAMES_MAX + 1] = { 0 };
    size_t count = 0;
    list_tables(call->command, tables);
    for (size_t i = 0; tables[i] != NULL; i++)
        for (const struct option_row *row = tables[i]; row->name != NULL && count < NAMES_MAX; row++)
            if (row->name[1] != '\0')
                names[count++] = row->name;
    return text_nearest(name, names);
}

char *call_keep(struct call *call, const char *text)
{
    strings_add(&call->defaults, text);
    return call->defaults.items[call->defaults.count - 1];
}

int call_read_again(struct call *call, call_layer_fn *layer, void *arg, struct error *err)
{
    const struct option_row *tables[TABLES_MAX] = { 0 };
    const struct command *command = call->command;
    int first = 0;
    if (command->clear != NULL)
        command->clear(call->options);
    memset(call->options, 0, command->options_size);
    list_tables(command, tables);
    int r = options_preset(tables, call, err);
    if (r == 0)
        r = defaults_apply(call, err);
    if (r == 0)
        r = layer(call, arg, err);
    if (r == 0)
        r = options_parse(call->n_words, call->words, tables, call, true, &first, err);
    return r;
}

/* A standby answered, because it was addressed, or because no controller leads. */
static void print_age(const struct call *call)
{
    if (call->client.age_ms >= 0)
        talk_line("answered by a standby, as of %" PRId64 ".%d s ago", call->client.age_ms / 1000,
            (int)(call->client.age_ms % 1000 / 100));
}

static int run_verb(
    struct call *call, const struct command *command, int argc, char **argv, struct error *err)
{
    const struct option_row *tables[TABLES_MAX] = { 0 };
    int first = 0;
    list_tables(command, tables);
    int r = options_preset(tables, call, err);
    if (r == 0)
        r = defaults_apply(call, err);
    if (r < 0 && !command->is_silent)
        return r;
    r = options_parse(argc, argv, tables, call, command->stops_at_operand, &first, err);
    if (r < 0) {
        bool is_unknown = err->kind == OPTIONS_UNKNOWN;
        if (err->hint[0] == '\0')
            (void)(is_unknown && command->option_hint != NULL ? error_hint(err, "%s", command->option_hint)
                                                              : hint_help(command, err));
        return r;
    }
    call->words = argv;
    call->n_words = first;
    if (call->is_help) {
        help_print_command(command, stdout);
        return EXIT_OK;
    }
    if (command->takes_nothing && first < argc) {
        (void)error_set(err, -EINVAL, "'%.60s' is not expected here", argv[first]);
        return hint_help(command, err);
    }
    client_init(&call->client, call->socket, call->host);
    call->client.is_quiet = call->is_quiet;
    r = command->run(call, argc - first, argv + first, err);
    print_age(call);
    client_clear(&call->client);
    return r;
}

const struct command *call_find_action(const struct command *command, const char *name)
{
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        if (strcmp(strchr(command->actions[i]->name, ' ') + 1, name) == 0)
            return command->actions[i];
    return NULL;
}

static bool is_list_word(const char *name)
{
    static const char *const words[] = { "list", "ls", "show", "status" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

/* Rejects a missing or unknown action and lists the existing ones. */
static int refuse_action(const struct command *command, const char *name, struct error *err)
{
    const char *names[ACTIONS_MAX + 1] = { 0 };
    _cleanup_buffer_ struct buffer all = { 0 };
    for (size_t i = 0; i < ACTIONS_MAX && command->actions[i] != NULL; i++) {
        names[i] = strchr(command->actions[i]->name, ' ') + 1;
        buffer_printf(&all, "%s%s", i == 0 ? "" : command->actions[i + 1] == NULL ? " or " : ", ", names[i]);
    }
    if (name == NULL)
        return error_set(err, -EINVAL, "an action is required: %s", buffer_text(&all));
    const char *near = text_nearest(name, names);
    _cleanup_free_ char *words = xasprintf("%s %s", command->name, name);
    const char *here = foreign_command_here(words);
    if (here != NULL) {
        (void)error_set(err, -EINVAL, "'%.60s' is not %s", name, buffer_text(&all));
        return error_hint(err, "here: %s", here);
    }
    if (command->list_command != NULL && is_list_word(name)) {
        (void)error_set(err, -EINVAL, "'%.60s' is not %s", name, buffer_text(&all));
        return error_hint(err, "the list: mgpu %s", command->list_command);
    }
    if (near != NULL)
        return error_set(err, -EINVAL, "'%.60s' is unknown. Did you mean '%s'?", name, near);
    return error_set(err, -EINVAL, "'%.60s' is not %s", name, buffer_text(&all));
}

/* The word after the verb selects the action; global options may come between them. */
static int run_action(struct call *call, const struct command *command, int argc, char **argv)
{
    const struct option_row *const tables[] = { call_global_rows, NULL };
    struct error err = { 0 };
    int first = 0;
    if (options_parse(argc, argv, tables, call, true, &first, &err) < 0)
        return report(call, command, &err);
    const struct command *action = first < argc ? call_find_action(command, argv[first]) : NULL;
    if (action != NULL)
        return call_run(call, action, argc - first, argv + first);
    if (call->is_help) {
        help_print_command(command, stdout);
        return EXIT_OK;
    }
    (void)refuse_action(command, first < argc ? argv[first] : NULL, &err);
    if (err.hint[0] == '\0')
        (void)hint_help(command, &err);
    return report(call, command, &err);
}

int call_run(struct call *call, const struct command *command, int argc, char **argv)
{
    struct error err = { 0 };
    if (command->actions != NULL)
        return run_action(call, command, argc, argv);
    call->command = command;
    call->options = xcalloc(1, command->options_size == 0 ? 1 : command->options_size);
    int r = run_verb(call, command, argc, argv, &err);
    if (command->clear != NULL)
        command->clear(call->options);
    free(call->options);
    call->options = NULL;
    strings_clear(&call->defaults);
    json_decref(call->env_files);
    if (r < 0 && command->is_silent)
        return EXIT_OK;
    return r < 0 ? report(call, command, &err) : r;
}
