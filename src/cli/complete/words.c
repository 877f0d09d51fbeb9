/* SPDX-License-Identifier: MIT */
/* Words from mgpud: one request each, and nothing if it does not answer in time. */
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/complete/complete.h"
#include "cli/options/call.h"
#include "cli/options/selector.h"
#include "cli/show/job_columns.h"

#define JOBS_MAX 200U // the newest

/* The member of an answer, an array; NULL without an answer. The caller releases `ret_answer`. */
static json_t *ask(
    const struct completion *completion, const char *path, const char *member, json_t **ret_answer)
{
    (void)client_get(completion->client, path, ret_answer, NULL);
    return json_object_get(*ret_answer, member);
}

static json_t *ask_jobs(const struct completion *completion, json_t **ret_answer)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_free_ char *user = selector_own_user();
    buffer_append_text(&path, API_PATH "/jobs?user=");
    http_append_encoded(&path, user);
    return ask(completion, buffer_text(&path), "jobs", ret_answer);
}

static bool is_in_list(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += length)
        if ((p == list || p[-1] == ',') && (p[length] == ',' || p[length] == '\0'))
            return true;
    return false;
}

/* Newest first, because that is most often the job meant. */
void complete_jobs(const struct completion *completion)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *jobs = ask_jobs(completion, &answer);
    const char *states = completion->command == NULL ? NULL : completion->command->job_states;
    size_t count = json_array_size(jobs), shown = 0;
    for (size_t i = count; i > 0 && shown < JOBS_MAX; i--) {
        const json_t *job = json_array_get(jobs, i - 1);
        if (states != NULL && !is_in_list(states, job_state_shown(job)))
            continue;
        _cleanup_free_ char *id = job_id(job), *name = field_shown(job, "name");
        _cleanup_free_ char *about = xasprintf("%s  %s", name, job_state_shown(job));
        complete_add(completion, id, about);
        shown++;
    }
}

void complete_job_names(const struct completion *completion)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *jobs = ask_jobs(completion, &answer);
    _cleanup_strings_ struct strings seen = { 0 };
    for (size_t i = json_array_size(jobs); i > 0 && seen.count < JOBS_MAX; i--) {
        const char *name = field_text(json_array_get(jobs, i - 1), "name");
        size_t k = 0;
        while (name != NULL && k < seen.count && strcmp(seen.items[k], name) != 0)
            k++;
        if (name == NULL || k < seen.count)
            continue;
        strings_add(&seen, name);
        complete_add(completion, name, NULL);
    }
}

static void print_members(const struct completion *completion, const char *path, const char *member,
    const char *word, const char *about)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *rows = ask(completion, path, member, &answer);
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(rows, index, row)
    {
        _cleanup_free_ char *name = field_shown(row, word);
        _cleanup_free_ char *text = about == NULL ? NULL : field_shown(row, about);
        complete_add(completion, name, text);
    }
}

void complete_users(const struct completion *completion)
{
    print_members(completion, API_PATH "/users", "users", "user", "group");
}

void complete_nodes(const struct completion *completion)
{
    print_members(completion, API_PATH "/nodes", "nodes", "name", "state");
}

void complete_reservations(const struct completion *completion)
{
    print_members(completion, API_PATH "/reservations", "reservations", "id", "name");
}

void complete_tokens(const struct completion *completion)
{
    print_members(completion, API_PATH "/tokens", "tokens", "id", "name");
}

void complete_settings(const struct completion *completion)
{
    print_members(completion, API_PATH "/config", "settings", "key", "value");
}

/* "3" on the only node, else "node:3". */
void complete_gpus(const struct completion *completion)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *gpus = ask(completion, API_PATH "/gpus", "gpus", &answer);
    const json_t *last = json_array_get(gpus, json_array_size(gpus) - 1);
    size_t index = 0;
    json_t *gpu = NULL;
    bool has_one_node = text_equal(field_text(json_array_get(gpus, 0), "node"), field_text(last, "node"));
    json_array_foreach(gpus, index, gpu)
    {
        _cleanup_free_ char *node = field_shown(gpu, "node"), *model = field_shown(gpu, "model"),
                            *state = field_shown(gpu, "state");
        int64_t number = field_integer(gpu, "index", 0);
        _cleanup_free_ char *word =
            has_one_node ? xasprintf("%" PRId64, number) : xasprintf("%s:%" PRId64, node, number);
        _cleanup_free_ char *about = xasprintf("%s  %s", model, state);
        complete_add(completion, word, about);
    }
}

/* External processes on GPUs. */
void complete_processes(const struct completion *completion)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *gpus = ask(completion, API_PATH "/gpus", "gpus", &answer);
    size_t index = 0, k = 0;
    json_t *gpu = NULL, *process = NULL;
    json_array_foreach(gpus, index, gpu)
    {
        json_array_foreach(json_object_get(gpu, "processes"), k, process)
        {
            if (field_is_known(process, "job"))
                continue;
            _cleanup_free_ char *pid = field_shown(process, "pid"), *user = field_shown(process, "user"),
                                *command = field_shown(process, "command");
            _cleanup_free_ char *about =
                xasprintf("%s (%s) on GPU %" PRId64, command, user, field_integer(gpu, "index", 0));
            complete_add(completion, pid, about);
        }
    }
}
