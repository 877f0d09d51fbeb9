/* SPDX-License-Identifier: MIT */
/* Any bytes as a file that submit reads: a script, jobs, a list of commands, variables; and as a sweep.
 * Any bytes as a line or the state file of scheduler.
 * Refused with a sentence, or made into requests; nothing is sent. The first byte says as which. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/env_file.h"
#include "cli/submit/command_file.h"
#include "cli/submit/job_file.h"
#include "cli/submit/script.h"
#include "cli/submit/submit.h"
#include "cli/submit/sweep.h"
#include "cli/verbs/verbs.h"
#include "compat/feed/jobs_file.h"
#include "compat/feed/state.h"
#include "fuzz.h"

static int try_script(struct call *call, const char *path, struct error *err)
{
    _cleanup_script_ struct script script = { 0 };
    _cleanup_json_ json_t *command = NULL;
    char program[] = "", *argv[] = { program };
    if (!script_open(&script, path))
        return 0;
    int r = call_read_again(call, script_apply, &script, err);
    return r < 0 ? r : script_command(&script, NULL, 1, argv, &command, err);
}

static int try_environment(const char *path, struct error *err)
{
    _cleanup_json_ json_t *variables = NULL;
    return env_file_read(path, &variables, err);
}

static void try_file(struct call *call, char kind, const char *path)
{
    _cleanup_plan_ struct plan plan = { 0 };
    struct error err = { 0 };
    int r = 0;
    if (kind == 's')
        r = try_script(call, path, &err);
    else if (kind == 'y')
        r = job_file_read(call, path, &plan, &err);
    else if (kind == 'l')
        r = command_file_read(call, path, &plan, &err);
    else if (kind == 'e')
        r = try_environment(path, &err);
    must_be(r >= 0 || err.message[0] != '\0');
    must_be(plan.n_jobs <= PLAN_JOBS_MAX);
}

static void try_sweep(const uint8_t *bytes, size_t length)
{
    _cleanup_free_ char *text = xstrndup((const char *)bytes, length);
    _cleanup_strings_ struct strings sweeps = { 0 };
    _cleanup_json_ json_t *requests = json_array(),
                          *request = json_pack("{s:s,s:{}}", "command", text, "env");
    struct error err = { 0 };
    strings_add(&sweeps, text);
    if (request == NULL)
        return;
    if (sweep_expand(&sweeps, request, requests, &err) < 0)
        must_be(err.message[0] != '\0');
    else
        must_be(json_array_size(requests) > 0 && json_array_size(requests) <= SWEEP_MAX);
}

/* A line of the jobs file that is taken is written so that it is read the same. */
static void try_feed(const uint8_t *bytes, size_t length)
{
    _cleanup_free_ char *text = xstrndup((const char *)bytes, length), *again = NULL;
    _cleanup_feed_line_ struct feed_line line = { 0 }, same = { 0 };
    _cleanup_json_ json_t *root = NULL;
    char before[FEED_HASH_SIZE], after[FEED_HASH_SIZE];
    struct error err = { 0 };
    int r = feed_line_parse(text, &line, &err);
    must_be(r >= 0 || err.message[0] != '\0');
    if (r > 0 && feed_line_format(&line, &again, &err) == 0) {
        must_be(feed_line_parse(again, &same, &err) == 1);
        feed_line_hash(&line, before);
        feed_line_hash(&same, after);
        must_be(strcmp(before, after) == 0 && line.priority == same.priority);
    }
    if (feed_state_parse(text, strlen(text), "state", &root, &err) < 0)
        must_be(err.message[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static char program[] = "submit";
    char path[64], *words[] = { program, NULL };
    struct submit_options options = { 0 };
    struct call call = {
        .command = &command_submit, .options = &options, .is_quiet = true, .words = words, .n_words = 1
    };
    if (length == 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/dev/shm/mgpu-fuzz-%d", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must_be(fd >= 0 && write_all(fd, bytes + 1, length - 1) == 0);
    (void)close(fd);
    client_init(&call.client, "/nowhere/mgpud.sock", NULL);
    try_file(&call, (char)bytes[0], path);
    try_sweep(bytes, length);
    try_feed(bytes, length);
    client_clear(&call.client);
    submit_options_clear(&options);
    strings_clear(&call.defaults);
    json_decref(call.env_files);
    (void)unlink(path);
    return 0;
}
