/* SPDX-License-Identifier: MIT */
/*
 * What the tools do: requests of the API, whose answers are passed on as they are. The environment of a job
 * is left out, because it may hold secrets and an assistant may be a program elsewhere. Output is read and
 * jobs are cancelled only if they belong to the user, whatever the user's role permits.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/client.h"
#include "cli/follow/log_tail.h"
#include "cli/mcp/tools.h"
#include "cli/options/selector.h"
#include "cli/submit/submit.h"
#include "cli/term/escapes.h"
#include "wire/http_client.h"

#define JOBS_SHOWN     50
#define LINES_SHOWN    100
#define LINES_MAX      2000
#define OUTPUT_BYTES   (256U << 10) // read from the end of the output at most
#define OUTPUT_WAIT_MS 30000
#define WAIT_S         60
#define WAIT_MAX_S     300

/*
 * The path of the one job that the arguments name, by a number as answers have it, or by a word as on the
 * command line: "42", "42.3", a name, "@". The caller frees it.
 */
static int read_job(
    const struct mcp *mcp, const json_t *arguments, enum job_name_use use, char **ret, struct error *err)
{
    const json_t *value = json_object_get(arguments, "job");
    _cleanup_strings_ struct strings jobs = { 0 };
    if (json_is_integer(value)) {
        *ret = xasprintf(API_PATH "/jobs/%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return 0;
    }
    char *word = (char *)(uintptr_t)json_string_value(value);
    if (strpbrk(word, "/?#%& ") != NULL)
        return error_set(err, -EINVAL, "'%.60s' is not the number or name of a job", word);
    int r = selector_resolve_by(&mcp->call->client, use, false, 1, &word, &jobs, err);
    if (r < 0)
        return r;
    if (jobs.count != 1)
        return error_set(err, -EINVAL, "'%.60s' names %zu jobs: use the number of one", word, jobs.count);
    *ret = xasprintf(API_PATH "/jobs/%s", jobs.items[0]);
    return 0;
}

/* An answer about a job; `more` is the rest of its path. */
static int get_of_job(
    const struct mcp *mcp, const json_t *arguments, const char *more, json_t **ret, struct error *err)
{
    _cleanup_free_ char *job = NULL;
    int r = read_job(mcp, arguments, JOB_NAME_NEWEST, &job, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = xasprintf("%s%s", job, more);
    r = client_get(&mcp->call->client, path, ret, err);
    if (r == 0)
        (void)json_object_del(*ret, "env");
    return r;
}

/* Checks that the job is the user's; *ret is its path, which the caller frees. */
static int find_own_job(
    const struct mcp *mcp, const json_t *arguments, enum job_name_use use, char **ret, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = NULL;
    int r = read_job(mcp, arguments, use, &path, err);
    if (r == 0)
        r = client_get(&mcp->call->client, path, &job, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *number = field_shown(job, "id");
    if (field_integer(job, "uid", -1) != mcp->uid)
        return error_set(err, -EPERM, "job %s belongs to %s, not to you", number, field_text(job, "user"));
    *ret = take_ptr(path);
    return 0;
}

int mcp_list_gpus(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    return client_get(&mcp->call->client, API_PATH "/gpus", ret, err);
}

int mcp_list_jobs(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    const char *state = field_text(arguments, "state");
    int64_t limit = field_integer(arguments, "limit", JOBS_SHOWN);
    if (limit < 1)
        return error_set(err, -ERANGE, "limit must be at least 1");
    if (state != NULL && state[strspn(state, "abcdefghijklmnopqrstuvwxyz,")] != '\0')
        return error_set(err, -EINVAL, "'%.60s' is not a list of states", state);
    buffer_printf(&path, API_PATH "/jobs?sparse=1&fold=1&limit=%lld", (long long)limit);
    if (state != NULL)
        buffer_printf(&path, "&state=%s", state);
    if (json_is_true(json_object_get(arguments, "mine")))
        buffer_printf(&path, "&user=%lld", (long long)mcp->uid);
    return client_get(&mcp->call->client, buffer_text(&path), ret, err);
}

int mcp_show_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    return get_of_job(mcp, arguments, "", ret, err);
}

int mcp_explain_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    return get_of_job(mcp, arguments, "/why", ret, err);
}

/* The length of the character at the front of text, 0 when its bytes are no UTF-8. */
static size_t character_length(const char *text, size_t length)
{
    for (size_t n = 1; n <= 4 && n <= length; n++) {
        json_t *character = json_stringn(text, n);
        json_decref(character);
        if (character != NULL)
            return n;
    }
    return 0;
}

/* Bytes that are no UTF-8, such as half a character at the front, become question marks: JSON has none. */
static void append_valid(struct buffer *out, const char *text, size_t length)
{
    while (length > 0) {
        size_t n = character_length(text, length);
        buffer_append(out, n > 0 ? text : "?", n > 0 ? n : 1);
        text += n > 0 ? n : 1;
        length -= n > 0 ? n : 1;
    }
}

/* The last lines, without control sequences. */
static char *shown_output(const struct buffer *bytes, int64_t lines)
{
    _cleanup_buffer_ struct buffer text = { 0 }, valid = { 0 };
    struct escapes escapes = { 0 };
    escapes_strip(&escapes, bytes->bytes, bytes->length, &text);
    uint64_t before = log_tail_in(text.bytes, text.length, (uint64_t)lines);
    append_valid(&valid, buffer_text(&text) + before, text.length - before);
    return xstrdup(buffer_text(&valid));
}

/* The end of one log of the job; empty while there is none. */
static int read_log(
    const struct mcp *mcp, const char *job, const char *query, int64_t lines, char **ret, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    int r = client_connect(&mcp->call->client, &http, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = xasprintf("%s/log%s", job, query);
    _cleanup_free_ char *range = xasprintf("Range: bytes=-%u", OUTPUT_BYTES);
    struct http_request request = { .method = "GET", .path = path, .header = range };
    r = http_client_request(http, &request, OUTPUT_WAIT_MS, err);
    if (r < 0)
        return r;
    const struct http_answer *answer = http_client_answer(http);
    bool is_empty = answer->status == 404 || answer->status == 416;
    if (!is_empty && answer->status != 200 && answer->status != 206)
        return client_problem(answer, err);
    *ret = is_empty ? xstrdup("") : shown_output(&answer->body, lines);
    return 0;
}

int mcp_read_output(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    _cleanup_free_ char *path = NULL, *out = NULL, *error = NULL;
    _cleanup_json_ json_t *job = NULL;
    int64_t lines = field_integer(arguments, "lines", LINES_SHOWN);
    if (lines < 1 || lines > LINES_MAX)
        return error_set(err, -ERANGE, "lines must be between 1 and %d", LINES_MAX);
    int r = find_own_job(mcp, arguments, JOB_NAME_NEWEST, &path, err);
    if (r == 0)
        r = client_get(&mcp->call->client, path, &job, err);
    if (r == 0)
        r = read_log(mcp, path, "", lines, &out, err);
    if (r < 0)
        return r;
    bool is_split = json_is_true(json_object_get(job, "split_log"));
    if (is_split)
        r = read_log(mcp, path, "?stream=stderr", lines, &error, err);
    if (r < 0)
        return r;
    const char *end = *out != '\0' && out[strlen(out) - 1] != '\n' ? "\n" : "";
    *ret = is_split ? json_sprintf("--- standard output ---\n%s%s--- standard error ---\n%s", out, end, error)
                    : json_string(out);
    return 0;
}

/* The arguments that are keys of a request for a job as they are. */
static void add_request(json_t *request, const json_t *arguments)
{
    static const char *const keys[] = { "gpus", "gpu_mem", "time_limit", "name", "cwd", "cpus", "memory" };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *value = json_object_get(arguments, keys[i]);
        if (value != NULL)
            (void)json_object_set(request, keys[i], value);
    }
}

int mcp_submit_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    struct submit_options options = { 0 };
    _cleanup_json_ json_t *request = NULL, *command = json_array();
    unsigned left_out = 0;
    bool is_dry = json_is_true(json_object_get(arguments, "dry_run"));
    (void)json_array_append_new(command, json_string("/bin/sh"));
    (void)json_array_append_new(command, json_string("-c"));
    (void)json_array_append(command, json_object_get(arguments, "command"));
    int r = submit_build(&options, command, &request, &left_out, err);
    if (r < 0)
        return r;
    add_request(request, arguments);
    r = submit_renew_key(request, err);
    if (r < 0)
        return r;
    r = client_call(&mcp->call->client, "POST", is_dry ? API_PATH "/jobs?dry_run=1" : API_PATH "/jobs",
        request, ret, err);
    if (r == 0)
        (void)json_object_del(*ret, "env");
    return r;
}

/* Changes one of the user's jobs: the answer is the job. */
static int change_job(const struct mcp *mcp, const json_t *arguments, const char *change, json_t *body,
    json_t **ret, struct error *err)
{
    _cleanup_free_ char *job = NULL;
    int r = find_own_job(mcp, arguments, JOB_NAME_LIVE, &job, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = xasprintf("%s/%s", job, change);
    r = client_call(&mcp->call->client, "POST", path, body, ret, err);
    if (r == 0)
        (void)json_object_del(*ret, "env");
    return r;
}

int mcp_cancel_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    return change_job(mcp, arguments, "cancel", body, ret, err);
}

int mcp_hold_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    return change_job(mcp, arguments, "hold", body, ret, err);
}

int mcp_release_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    return change_job(mcp, arguments, "release", body, ret, err);
}

int mcp_retry_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    int r = submit_renew_key(body, err);
    return r < 0 ? r : change_job(mcp, arguments, "retry", body, ret, err);
}

/* A job that has not ended by then is no failure: the answer is the job as it is. */
int mcp_wait_job(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    _cleanup_free_ char *job = NULL;
    int64_t seconds = field_integer(arguments, "seconds", WAIT_S);
    if (seconds < 1 || seconds > WAIT_MAX_S)
        return error_set(err, -ERANGE, "seconds must be between 1 and %d", WAIT_MAX_S);
    int r = read_job(mcp, arguments, JOB_NAME_WAIT, &job, err);
    if (r == 0)
        r = client_connect(&mcp->call->client, &http, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = xasprintf("%s/wait?timeout=%lld", job, (long long)seconds);
    struct http_request request = { .method = "GET", .path = path };
    r = http_client_request(http, &request, seconds * 1000 + OUTPUT_WAIT_MS, err);
    if (r < 0)
        return r;
    const struct http_answer *answer = http_client_answer(http);
    if (answer->status != 200 && answer->status != 408)
        return client_problem(answer, err);
    return get_of_job(mcp, arguments, "", ret, err);
}
