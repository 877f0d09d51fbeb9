/* SPDX-License-Identifier: MIT */
/*
 * Submits the lines of the jobs file. A line whose job waits, runs, succeeded or was cancelled is not
 * submitted again; one whose job failed is, when the file changes or `start` begins. The submit key contains
 * the hash of the line, so a line that was submitted but not recorded does not become a second job. A
 * cancelled line is submitted again after it was removed from the file and added again.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "cli/term/text_file.h"
#include "compat/feed/feed.h"

#define LINES_MAX   100000U
#define WAIT_MAX_MS 30000

void feed_lines_clear(struct feed *feed)
{
    for (size_t i = 0; i < feed->n_lines; i++)
        feed_line_clear(&feed->lines[i]);
    free(feed->lines);
    feed->lines = NULL;
    feed->n_lines = feed->at = 0;
    feed->attempts = 0;
}

void feed_say_once(struct feed *feed, const struct error *err)
{
    if (strcmp(feed->last_problem, err->message) == 0)
        return;
    memcpy(feed->last_problem, err->message, sizeof(feed->last_problem));
    feed_log_problem(&feed->log, err);
}

/* `is_changed`: the file has changed, so failed jobs are tried again. */
static bool is_known(const struct feed *feed, const struct feed_line *line, bool is_changed)
{
    char hash[FEED_HASH_SIZE];
    feed_line_hash(line, hash);
    const json_t *job = feed_state_job(&feed->state, hash);
    if (job == NULL || field_is(job, "status", "back") || field_is(job, "status", "removed"))
        return false;
    bool has_failed = field_is(job, "status", "failed") || field_is(job, "status", "gone");
    return !is_changed || !has_failed;
}

static void report(void *arg, const struct error *err)
{
    feed_log_problem(&((struct feed *)arg)->log, err);
}

static void read_models(struct feed *feed)
{
    _cleanup_text_file_ struct text_file file = { 0 };
    struct error err = { 0 };
    struct feed_llm llm = { 0 };
    const char *path = feed->settings->llm_path;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        feed_llm_clear(&feed->llm);
        return;
    }
    int r = text_file_open(&file, path, FEED_FILE_MAX, &err);
    if (r == 0)
        r = feed_llm_parse(file.text, strlen(file.text), path, report, feed, &llm, &err);
    if (r < 0) {
        feed_log_problem(&feed->log, &err);
        return;
    }
    feed_llm_clear(&feed->llm);
    feed->llm = llm;
}

static void add_line(struct feed *feed, struct feed_line *line)
{
    if ((feed->n_lines & (feed->n_lines - 1)) == 0)
        feed->lines =
            xreallocarray(feed->lines, feed->n_lines == 0 ? 1 : feed->n_lines * 2, sizeof(*feed->lines));
    feed->lines[feed->n_lines++] = *line;
    *line = (struct feed_line){ 0 };
}

/* Reports an invalid line, unless it had the same error when the file was last read. */
static void refuse(struct feed *feed, const struct text_file *file, json_t *reported, struct error *err)
{
    (void)error_wrap(err, "%.200s:%u", file->path, file->line);
    _cleanup_free_ char *shown = text_escape(err->message, sizeof(err->message));
    if (json_object_get(feed->reported, shown) == NULL)
        feed_log_problem(&feed->log, err);
    (void)json_object_set_new(reported, shown, json_true());
}

/* One pass over the whole file. */
struct reading {
    const struct text_file *file;
    bool is_changed;
    json_t *reported; // problems of its lines
    json_t *hashes;   // of its lines
};

/* Takes a line that is new and can run. */
static void consider(struct feed *feed, const struct reading *reading, const char *text)
{
    _cleanup_feed_line_ struct feed_line line = { 0 };
    struct error err = { 0 };
    char hash[FEED_HASH_SIZE];
    int r = feed_line_parse(text, &line, &err);
    line.number = reading->file->line;
    feed_line_hash(&line, hash);
    if (r > 0)
        (void)json_object_set_new(reading->hashes, hash, json_true());
    if (r > 0 && is_known(feed, &line, reading->is_changed))
        return;
    if (r > 0 && access(line.script, F_OK) < 0) {
        feed->wants_again = true;
        r = error_set_errno(&err, -errno, "script %.200s", line.script);
        (void)error_hint(&err, "use its full path; the line will be checked again");
    }
    if (r > 0 && feed->n_lines >= LINES_MAX) {
        feed->wants_again = true;
        r = error_set(&err, -EFBIG, "more than %u lines at once; this one is deferred", LINES_MAX);
    }
    if (r > 0)
        add_line(feed, &line);
    if (r < 0)
        refuse(feed, reading->file, reading->reported, &err);
}

/* If the line of a cancelled job is removed from the file, it may be added again. */
static void note_removed(struct feed *feed)
{
    const char *hash = NULL;
    json_t *job = NULL;
    json_object_foreach(json_object_get(feed->state.root, "jobs"), hash, job)
    {
        if (!field_is(job, "status", "cancelled") || json_object_get(feed->in_file, hash) != NULL)
            continue;
        (void)json_object_set_new(job, "status", json_string("removed"));
        feed->state.is_dirty = true;
    }
}

void feed_lines_read(struct feed *feed)
{
    _cleanup_text_file_ struct text_file file = { 0 };
    struct error err = { 0 };
    const char *path = feed->settings->jobs_path;
    if (path[0] == '\0')
        return;
    int r = text_file_open(&file, path, FEED_FILE_MAX, &err);
    if (r == -ENOENT)
        (void)error_set(&err, r, "%s does not exist yet; its lines are submitted once it does", path);
    if (r < 0) {
        feed_say_once(feed, &err);
        return;
    }
    feed->last_problem[0] = '\0';
    uint64_t content = feed_hash(file.text, strlen(file.text), FEED_HASH_START);
    bool is_changed = content != feed->content;
    if (!is_changed && !feed->wants_again)
        return;
    feed->content = content;
    feed->wants_again = false;
    feed_lines_clear(feed);
    feed->hand_ms = 0;
    read_models(feed);
    struct reading reading = { &file, is_changed, json_object(), json_object() };
    if (feed->in_file != NULL) // jobs may have been cancelled since
        note_removed(feed);
    for (const char *text = NULL; (text = text_file_next(&file)) != NULL;)
        consider(feed, &reading, text);
    json_decref(feed->reported);
    json_decref(feed->in_file);
    feed->reported = reading.reported;
    feed->in_file = reading.hashes;
    note_removed(feed);
}

static void note_job(struct feed *feed, const struct feed_line *line, const char *hash, json_int_t id)
{
    json_t *jobs = json_object_get(feed->state.root, "jobs"), *old = json_object_get(jobs, hash);
    json_t *entry = json_pack("{s:I, s:s, s:s, s:[], s:I}", "id", id, "status", "queued", "script",
        line->script, "gpus", "tries", (json_int_t)field_integer(old, "tries", 0) + 1);
    if (entry == NULL)
        return;
    if (line->conda != NULL)
        (void)json_object_set_new(entry, "conda_env", json_string(line->conda));
    (void)json_object_set_new(jobs, hash, entry);
    feed->state.is_dirty = true;
    feed_jobs_note_new(feed, id, hash);
    feed_log_say(&feed->log, "job %lld queued: %s%s%s (line %u, priority %lld%s%s)", (long long)id,
        line->script, line->arguments != NULL ? " " : "", line->arguments != NULL ? line->arguments : "",
        line->number, (long long)line->priority, line->conda != NULL ? ", conda " : "",
        line->conda != NULL ? line->conda : "");
}

/* Errors of mgpud that are permanent; others, such as a full queue or disk, are temporary. */
static bool is_for_good(int code)
{
    return code == -EINVAL || code == -EBADSLT || code == -EPERM || code == -ENOENT || code == -E2BIG ||
           code == -EEXIST;
}

/* Retries the same line after increasing delays; finally, the line stays in the file for the next pass. */
static void plan_another(struct feed *feed, const struct error *err)
{
    const struct feed_settings *settings = feed->settings;
    int64_t wait_ms = settings->retry_wait_ms;
    for (int64_t i = 0; i < feed->attempts && wait_ms < WAIT_MAX_MS; i++)
        wait_ms *= 2;
    feed->attempts++;
    feed_log_say(&feed->log, "%s:%u: not queued yet (attempt %lld of %lld): %s", settings->jobs_path,
        feed->lines[feed->at].number, (long long)feed->attempts, (long long)settings->max_attempts,
        err->message);
    if (feed->attempts < settings->max_attempts) {
        feed->hand_ms = clock_boot_ms() + (wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
        return;
    }
    feed->wants_again = true;
    feed->attempts = 0;
    feed->at++;
}

static int send_line(struct feed *feed, const struct feed_line *line, const char *hash, struct error *err)
{
    _cleanup_json_ json_t *request = NULL, *job = NULL;
    _cleanup_free_ char *key = xasprintf("scheduler-%s-%s-%lld", field_text(feed->state.root, "session"),
        hash, (long long)field_integer(feed_state_job(&feed->state, hash), "tries", 0));
    int r = feed_request_make(feed, line, key, &request, err);
    if (r == 0)
        r = client_call(&feed->call->client, "POST", API_PATH "/jobs", request, &job, err);
    /* The line was submitted, and this program ended before recording that; the name of its log and the
     * environment are different now. */
    bool was_sent = r == -EEXIST && feed->call->client.conflict_job != 0;
    if (r == 0 || was_sent)
        note_job(feed, line, hash, was_sent ? feed->call->client.conflict_job : field_integer(job, "id", 0));
    return was_sent ? 0 : r;
}

int feed_lines_hand(struct feed *feed, struct error *err)
{
    char hash[FEED_HASH_SIZE];
    const struct feed_line *line = &feed->lines[feed->at];
    feed_line_hash(line, hash);
    int r = is_known(feed, line, true) ? 0 : send_line(feed, line, hash, err);
    if (client_is_loss(r))
        return r;
    if (r < 0 && !is_for_good(r)) {
        plan_another(feed, err);
        return 0;
    }
    if (r < 0) {
        (void)error_wrap(err, "%.200s:%u", feed->settings->jobs_path, line->number);
        feed_log_problem(&feed->log, err);
    }
    feed->attempts = 0;
    feed->at++;
    return 0;
}
