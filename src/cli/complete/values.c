/* SPDX-License-Identifier: MIT */
/* Completes the value of an option by the kind of value in its row. */
#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "cli/complete/complete.h"
#include "cli/options/commands.h"
#include "cli/options/list.h"
#include "cli/show/job_columns.h"
#include "job/notify.h"

static void complete_files(const struct completion *completion)
{
    (void)fputs(":files\n", completion->out);
}

static void complete_directories(const struct completion *completion)
{
    (void)fputs(":directories\n", completion->out);
}

/* The command of a job begins here; its other words are usually files. */
void complete_commands(const struct completion *completion)
{
    (void)fputs(completion->operands == 0 ? ":commands\n" : ":files\n", completion->out);
}

void complete_verbs(const struct completion *completion)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        if (!commands[i]->is_hidden)
            complete_add(completion, commands[i]->name, commands[i]->help);
}

void complete_actions(const struct completion *completion)
{
    const struct command *const *actions = completion->command->actions;
    for (size_t i = 0; actions[i] != NULL; i++)
        complete_add(completion, strchr(actions[i]->name, ' ') + 1, actions[i]->help);
}

/* A minus before a column of --sort is part of the word. */
static void complete_columns(const struct completion *completion)
{
    const struct list_kind *list = completion->command == NULL ? NULL : completion->command->list;
    const char *sign = completion->part[0] == '-' ? "-" : "";
    for (const struct list_column *column = list == NULL ? NULL : list->columns;
         column != NULL && column->name != NULL; column++) {
        _cleanup_free_ char *word = xasprintf("%s%s", sign, column->name);
        complete_add(completion, word, column->help);
    }
}

static void complete_formats(const struct completion *completion)
{
    static const char *const formats[][2] = {
        { "json", "the server's JSON" },
        { "jsonl", "one line of JSON per row" },
        { "csv", "all columns, separated by commas" },
        { "wide", "more columns" },
        { "help", "list of columns" },
    };
    bool is_first = strchr(completion->head, ',') == NULL; // these stand alone
    for (size_t i = 0; is_first && i < sizeof(formats) / sizeof(formats[0]); i++)
        complete_add(completion, formats[i][0], formats[i][1]);
    complete_columns(completion);
}

static void complete_states(const struct completion *completion)
{
    for (size_t i = 0; job_state_word(i) != NULL; i++)
        complete_add(completion, job_state_word(i), NULL);
}

static void complete_colors(const struct completion *completion)
{
    complete_add(completion, "auto", "on a terminal");
    complete_add(completion, "always", NULL);
    complete_add(completion, "never", NULL);
}

/* A job, and after its colon how it must have ended. */
static void complete_after(const struct completion *completion)
{
    static const char *const kinds[][2] = {
        { "ok", "after it exits with 0" },
        { "any", "after it ends in any way" },
        { "fail", "after it fails" },
        { "start", "after it has started" },
        { "corr", "elements of an array: after those with the same index" },
    };
    const char *colon = strchr(completion->part, ':');
    if (colon == NULL) {
        complete_jobs(completion);
        return;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        _cleanup_free_ char *job = xstrndup(completion->part, (size_t)(colon - completion->part));
        _cleanup_free_ char *word = xasprintf("%s:%s", job, kinds[i][0]);
        complete_add(completion, word, kinds[i][1]);
    }
}

void complete_signals(const struct completion *completion)
{
    for (int i = 1; i < SIGSYS + 1; i++)
        if (sigabbrev_np(i) != NULL)
            complete_add(completion, sigabbrev_np(i), sigdescr_np(i));
}

static void complete_notify(const struct completion *completion)
{
    complete_add(completion, "mail", "mail to yourself");
    complete_add(completion, "mail:", "mail to this address");
    complete_add(completion, "https://", "POST of the job as JSON");
    complete_add(completion, "none", "nobody");
}

static void complete_notify_on(const struct completion *completion)
{
    for (size_t i = 0; notify_event_word(i) != NULL; i++)
        complete_add(completion, notify_event_word(i), NULL);
}

static void complete_fallbacks(const struct completion *completion)
{
    complete_add(completion, "home", NULL);
    complete_add(completion, "tmp", NULL);
    complete_directories(completion);
}

/* `option` NULL: any name. A kind that is not listed has no words to offer. */
static const struct {
    const char *argument, *option;
    bool is_list;
    complete_fn *complete;
} kinds[] = {
    { "FORMAT", NULL, true, complete_formats },
    { "COLUMNS", NULL, true, complete_columns },
    { "LIST", "state", true, complete_states },
    { "LIST", "users", true, complete_users },
    { "LIST", "gpu-ids", true, complete_gpus },
    { "LIST", "node-gpu-ids", true, complete_gpus },
    { "LIST", "gpu-allow", true, complete_gpus },
    { "USER", NULL, false, complete_users },
    { "GLOB", NULL, false, complete_job_names },
    { "JOB[:ok|any|fail|start[+TIME]|corr]", NULL, true, complete_after },
    { "WHEN", "color", false, complete_colors },
    { "SIGNAL", NULL, false, complete_signals },
    { "SIGNAL[@TIME]", NULL, false, complete_signals },
    { "TARGET", NULL, true, complete_notify },
    { "EVENTS", "notify-on", true, complete_notify_on },
    { "FILE", NULL, false, complete_files },
    { "PATH", NULL, false, complete_files },
    { "DIR", NULL, false, complete_directories },
    { "home|tmp|DIR", NULL, false, complete_fallbacks },
};

/* "json", "kill|requeue": the words themselves. */
static void complete_literals(const struct completion *completion, const char *argument)
{
    _cleanup_free_ char *copy = xstrdup(argument);
    char *rest = copy;
    if (argument[strspn(argument, "abcdefghijklmnopqrstuvwxyz-|")] != '\0')
        return;
    for (char *word = NULL; (word = strsep(&rest, "|")) != NULL;)
        complete_add(completion, word, NULL);
}

void complete_value(const struct completion *completion, const struct option_row *row)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        bool is_it = strcmp(kinds[i].argument, row->argument) == 0 &&
                     (kinds[i].option == NULL || strcmp(kinds[i].option, row->name) == 0);
        if (is_it && kinds[i].is_list)
            complete_list(completion, kinds[i].complete);
        else if (is_it)
            kinds[i].complete(completion);
        if (is_it)
            return;
    }
    complete_literals(completion, row->argument);
}
