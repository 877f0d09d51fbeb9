/* SPDX-License-Identifier: MIT */
/* mgpu attach: connects to the terminal of a running job, or shows the output of one without a terminal. */
#include <errno.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/follow/run_job.h"
#include "cli/options/selector.h"
#include "cli/options/talk.h"
#include "cli/verbs/verbs.h"

struct attach_options {
    struct terminal_options terminal;
    bool is_read_only;
};

static const struct option_row rows[] = {
    { 0, "rank", "N", "for a job on several nodes: rank N, from 0 (0)",
        TERMINAL_RANK(struct attach_options) },
    { 'r', "read-only", NULL, "view only, ignore keys",
        OPTION_INNER(flag, struct attach_options, is_read_only) },
    { 0, "detach-keys", "KEYS", "keys to detach: ctrl-p,ctrl-q, or none (Ctrl-] d)",
        TERMINAL_KEYS(struct attach_options) },
    { 0 },
};

/* A job without a terminal accepts no input, so its output is shown. */
static int watch_output(struct call *call, const char *path, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    const struct follow_options options = { .leaver = LEAVER_ATTACH };
    int r = client_get(&call->client, request, &job, err);
    if (r < 0)
        return r;
    if (!call->is_quiet)
        talk_line("job %s has no terminal: showing its output, Ctrl-C detaches", path);
    return follow_job(call, job, &options, err);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct attach_options *options = call->options;
    _cleanup_strings_ struct strings jobs = { 0 };
    if (argc != 1)
        return error_set(err, -EINVAL, "no job given: use a number such as 42, a name, or @");
    int r = selector_resolve(call, argc, argv, &jobs, err);
    if (r < 0)
        return r;
    if (jobs.count != 1)
        return error_set(
            err, -EINVAL, "'%.60s' matches %zu jobs; only one terminal can be attached", argv[0], jobs.count);
    struct terminal_options terminal = options->terminal;
    terminal.is_interactive = true;
    terminal.leaver = options->is_read_only ? LEAVER_ATTACH_READ_ONLY : LEAVER_ATTACH_TERMINAL;
    r = run_attached(call, jobs.items[0], &terminal, options->is_read_only, false, err);
    return r == -ENOTTY ? watch_output(call, jobs.items[0], err) : r;
}

const struct command command_attach = {
    .name = "attach",
    .aliases = { "at" },
    .usage = "[OPTIONS] JOB",
    .help = "Attach to the terminal of a running job",
    .detail =
        "Several viewers can share a terminal; the newest who may type sets its size. Ctrl-] d detaches,\n"
        "Ctrl-] ? shows more keys. Exit status: 0 after detaching, otherwise that of the job.",
    .tables = { rows },
    .options_size = sizeof(struct attach_options),
    .takes_jobs = true,
    .run = run,
};
