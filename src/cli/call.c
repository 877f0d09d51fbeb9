/* SPDX-License-Identifier: MIT */
/* From the words after the verb to its function: options into the verb's struct, operands into argv. */
#include "cli/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/exit_code.h"
#include "cli/help.h"
#include "cli/talk.h"

static int set_socket(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)err;
    call->socket = value;
    return 0;
}

static int set_json(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)value, (void)err;
    call->is_json = true;
    return 0;
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
    return error_set(err, -EINVAL, "--color: '%.60s' is not auto, always or never", value);
}

static int set_quiet(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)value, (void)err;
    call->is_quiet = true;
    return 0;
}

static int set_help(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)value, (void)err;
    call->is_help = true;
    return 0;
}

static int set_utc(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)value, (void)err;
    call->times = TIME_UTC;
    return 0;
}

static int set_iso(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)value, (void)err;
    call->times = TIME_ISO;
    return 0;
}

const struct option_row call_global_rows[] = {
    { 0, "socket", "PATH", "socket of mgpud (else MGPU_SOCKET, else the usual places)", set_socket },
    { 0, "json", NULL, "print the server's JSON", set_json },
    { 0, "color", "WHEN", "auto, always or never", set_color },
    { 0, "utc", NULL, "show times in UTC", set_utc },
    { 0, "iso", NULL, "show times as 2026-11-21T14:20:05+0100", set_iso },
    { 'q', "quiet", NULL, "say nothing but errors", set_quiet },
    { 'h', "help", NULL, "show this help", set_help },
    { 0 },
};

static int set_output(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)err;
    call->list.output = value;
    return 0;
}

static int set_headless(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)value, (void)err;
    call->list.is_headless = true;
    return 0;
}

static int set_sort(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    (void)err;
    call->list.sort = value;
    return 0;
}

const struct option_row call_list_rows[] = {
    { 'o', "output", "FORMAT", "json, jsonl, csv, wide, columns such as id,state, or help", set_output },
    { 'H', "no-header", NULL, "leave the header out", set_headless },
    { 0, "sort", "COLUMNS", "order by these columns; -column turns one around", set_sort },
    { 0 },
};

/* Errors of the verb itself: usage and the daemon alike. */
static int report(const struct call *call, const struct command *command, const struct error *err)
{
    (void)fflush(stdout);
    talk_error(command->name[0] == '\0' ? NULL : command->name, err);
    (void)call;
    return command->is_job_status ? EXIT_SELF : exit_code_of_error(err->code);
}

static int run_verb(
    struct call *call, const struct command *command, int argc, char **argv, struct error *err)
{
    const struct option_row *tables[COMMAND_TABLES + 2] = { 0 };
    size_t count = 0;
    for (size_t i = 0; i < COMMAND_TABLES && command->tables[i] != NULL; i++)
        tables[count++] = command->tables[i];
    tables[count] = call_global_rows;
    int first = 0;
    int r = options_parse(argc, argv, tables, call, command->stops_at_operand, &first, err);
    if (r < 0) {
        if (err->hint[0] == '\0')
            (void)error_hint(err, "mgpu help %s", command->name);
        return r;
    }
    if (call->is_help) {
        help_print_command(command, stdout);
        return EXIT_OK;
    }
    if (command->takes_nothing && first < argc) {
        (void)error_set(err, -EINVAL, "'%.60s' is not expected here", argv[first]);
        return error_hint(err, "mgpu help %s", command->name);
    }
    client_init(&call->client, call->socket);
    r = command->run(call, argc - first, argv + first, err);
    client_clear(&call->client);
    return r;
}

int call_run(struct call *call, const struct command *command, int argc, char **argv)
{
    struct error err = { 0 };
    call->command = command;
    call->options = xcalloc(1, command->options_size == 0 ? 1 : command->options_size);
    int r = run_verb(call, command, argc, argv, &err);
    if (command->clear != NULL)
        command->clear(call->options);
    free(call->options);
    call->options = NULL;
    return r < 0 ? report(call, command, &err) : r;
}
