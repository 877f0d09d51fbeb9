/* SPDX-License-Identifier: MIT */
/* mgpu edit: changes the requests of waiting jobs. The keys are the rows of ask.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/complete/complete.h"
#include "cli/options/ask.h"
#include "cli/show/jobs_each.h"
#include "cli/submit/submit_check.h"
#include "cli/verbs/verbs.h"

static int refuse_key(const char *name, struct error *err)
{
    _cleanup_free_ const char **names = NULL;
    size_t count = 0;
    struct ask_key row;
    for (size_t i = 0; ask_key(i, &row); i++) {
        names = xreallocarray(names, count + 3, sizeof(char *));
        names[count++] = row.key;
        if (row.alias != NULL)
            names[count++] = row.alias;
        names[count] = NULL;
    }
    _cleanup_free_ char *shown = text_escape(name, 60);
    const char *near = text_nearest(name, names);
    if (near != NULL)
        (void)error_set(err, -EINVAL, "unknown key '%s'. Did you mean '%s'?", shown, near);
    else
        (void)error_set(err, -EINVAL, "unknown key '%s'", shown);
    return error_hint(err, "all keys: mgpu help edit");
}

/* True for an empty value, or a word that means the default. */
static bool is_default(const char *value)
{
    return value[0] == '\0' || strcmp(value, "none") == 0 || strcmp(value, "default") == 0;
}

static int add_change(struct client *client, json_t *changes, const char *word, struct error *err)
{
    const char *equals = strchr(word, '=');
    _cleanup_free_ char *name = xstrndup(word, (size_t)(equals - word));
    struct ask_key row;
    if (!ask_find(name, &row))
        return refuse_key(name, err);
    if (json_object_get(changes, row.key) != NULL)
        return error_set(err, -EINVAL, "%s is given twice", row.key);
    if (is_default(equals + 1))
        return json_object_set_new(changes, row.key, json_null());
    return ask_set(changes, client, row.key, name, equals + 1, err);
}

static int edit(struct call *call, const char *id, void *arg, struct error *err)
{
    const json_t *changes = arg;
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/edit", id);
    int r = client_call(&call->client, "POST", path, changes, &job, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_line(job, stdout);
    } else if (!call->is_quiet && isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "  job %s was changed; mgpu why %s\n", id, id);
    }
    return 0;
}

/* The words without '=' are jobs; the rest are changes. */
static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 }, jobs = { 0 };
    _cleanup_json_ json_t *changes = json_object();
    for (int i = 0; i < argc; i++) {
        int r = 0;
        if (strchr(argv[i], '=') == NULL)
            strings_add(&words, argv[i]);
        else
            r = add_change(&call->client, changes, argv[i], err);
        if (r < 0)
            return r;
    }
    if (words.count > 0 && json_object_size(changes) == 0) {
        (void)error_set(err, -EINVAL, "nothing to change");
        return error_hint(err, "mgpu edit %.60s priority=10 time=4h", words.items[0]);
    }
    int r = selector_resolve(call, (int)words.count, words.items, &jobs, err);
    if (r < 0)
        return r;
    int status = jobs_each(call, &jobs, edit, changes);
    if (status == EXIT_OK)
        submit_check_ask(call, changes);
    return status;
}

/* Keys after the first job; values for keys with a few fixed words. */
static void complete_operand(const struct completion *completion)
{
    const char *equals = strchr(completion->part, '=');
    if (equals == NULL)
        complete_jobs(completion);
    struct ask_key row;
    for (size_t i = 0; completion->operands > 0 && ask_key(i, &row); i++) {
        bool is_flag = strcmp(row.argument, "yes|no") == 0;
        _cleanup_free_ char *word = xasprintf("%s=", row.key), *yes = xasprintf("%syes", word),
                            *no = xasprintf("%sno", word);
        if (equals == NULL)
            complete_add(completion, word, row.help);
        else if (is_flag) {
            complete_add(completion, yes, NULL);
            complete_add(completion, no, NULL);
        }
    }
}

#define NAMES_WIDTH 24 // longer ones are on their own line

static void print_keys(FILE *out)
{
    (void)fputs("\nKeys:\n", out);
    struct ask_key row;
    for (size_t i = 0; ask_key(i, &row); i++) {
        _cleanup_free_ char *names = row.alias == NULL
                                         ? xasprintf("%s=%s", row.key, row.argument)
                                         : xasprintf("%s, %s=%s", row.key, row.alias, row.argument);
        bool is_long = strlen(names) > NAMES_WIDTH;
        (void)fprintf(out, "  %-*s%s", NAMES_WIDTH, names, is_long ? "\n" : "");
        (void)fprintf(out, "%*s  ", is_long ? NAMES_WIDTH + 2 : 0, "");
        help_text_print(row.help, NAMES_WIDTH + 4, NAMES_WIDTH + 4, out);
    }
}

const struct command command_edit = {
    .name = "edit",
    .usage = "JOB... KEY=VALUE...",
    .help = "Change the request of waiting jobs, or the time limit of running ones",
    .option_hint = "changes are written without dashes: mgpu edit 42 priority=5; keys: mgpu help edit",
    .detail = "An empty value, or none, restores the default. Of a running job, only the time limit can be "
              "changed.",
    .takes_jobs = true,
    .run = run,
    .job_states = "queued,held",
    .complete_operand = complete_operand,
    .print_more = print_keys,
};
