/* SPDX-License-Identifier: MIT */
/*
 * GET /journal: the log of all events, one JSON object per line, read from the store a page at a time, so
 * memory does not depend on its length. The first line has this mgpud's settings. The line of a submitted job
 * contains the hash of its command, which is derived from the job record; old records are fetched.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/routes.h"
#include "controller/http/request.h"
#include "wire/json_journal.h"
#include "wire/json_text.h"
#include "wire/limits.h"

#define JOURNAL_SCHEMA "mgpu-journal/v1"

struct journal {
    uint64_t after, last; // the last event written, and the last one to write
    struct job_event *events;
    size_t count, at; // of the page
    bool is_fetching;
};

static void drop_page(struct journal *journal)
{
    for (size_t i = 0; i < journal->count; i++)
        job_event_clear(&journal->events[i]);
    free(journal->events);
    journal->events = NULL;
    journal->count = journal->at = 0;
}

static void release_journal(struct request *request)
{
    struct journal *journal = request->work;
    drop_page(journal);
    users_give(request->serve->users, request->who.uid, SHARE_LISTS, 1);
    free(journal);
}

static void write_line(struct request *request, json_t *object)
{
    _cleanup_free_ char *text = json_text_format(object);
    json_decref(object);
    request_stream(request, text, strlen(text));
    request_stream(request, "\n", 1);
}

static void continue_journal(struct request *request);

static void on_row(void *arg, uint64_t id, struct job *row)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        struct journal *journal = request->work;
        journal->is_fetching = false;
        write_line(request,
            json_journal_write(&journal->events[journal->at++], row != NULL ? core_command_hash(row) : 0));
        continue_journal(request);
    }
    job_free(row);
    request_unref(request);
}

/* Writes the events of the page; false while it waits for a job of one. */
static bool write_page(struct request *request)
{
    struct journal *journal = request->work;
    const struct controller *controller = request->serve->controller;
    while (journal->at < journal->count) {
        const struct job_event *event = &journal->events[journal->at];
        const struct job *job =
            event->type == EVENT_SUBMITTED ? core_job(controller->core, event->job) : NULL;
        journal->after = event->seq;
        if (event->type == EVENT_SUBMITTED && job == NULL) {
            journal->is_fetching = true;
            request_ref(request);
            store_fetch_job(controller->store, event->job, on_row, request);
            return false;
        }
        write_line(request, json_journal_write(event, job != NULL ? core_command_hash(job) : 0));
        journal->at++;
    }
    drop_page(journal);
    return true;
}

static void on_events(void *arg, const struct job_event *events, size_t count)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        struct journal *journal = request->work;
        journal->is_fetching = false;
        journal->events = xcalloc(count + 1, sizeof(*events));
        for (size_t i = 0; i < count && events[i].seq <= journal->last; i++)
            record_copy(&job_event_record, &journal->events[journal->count++], &events[i]);
        if (journal->count == 0)
            journal->after = journal->last;
        continue_journal(request);
    }
    request_unref(request);
}

static void continue_journal(struct request *request)
{
    struct journal *journal = request->work;
    if (journal->is_fetching || !write_page(request))
        return;
    if (journal->after >= journal->last) {
        request_end_stream(request);
        return;
    }
    if (request_room(request) < LIMIT_STREAM_BUFFER_BYTES / 2)
        return; // on_drained comes
    journal->is_fetching = true;
    request_ref(request);
    store_fetch_events(
        request->serve->controller->store, journal->after, 0, LIMIT_JOURNAL_PAGE, on_events, request);
}

/* Text with one "key=value" per line, as an object. */
static json_t *write_settings(const struct core *core)
{
    _cleanup_free_ char *text = core_settings_text(core);
    json_t *object = json_object();
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '='), *end = NULL;
        if (equals == NULL || strncmp(line, "account=", strlen("account=")) == 0)
            continue; // the limits of each user are in the events
        *equals = '\0';
        double number = strtod(equals + 1, &end);
        if (end == equals + 1 || *end != '\0')
            (void)json_object_set_new(object, line, json_text_string(equals + 1));
        else if (strchr(equals + 1, '.') != NULL)
            (void)json_object_set_new(object, line, json_real(number));
        else
            (void)json_object_set_new(object, line, json_integer((json_int_t)number));
    }
    return object;
}

void handle_journal(struct request *request)
{
    const struct core *core = request->serve->controller->core;
    const char *after = query_get(&request->query, "after");
    struct error err = { 0 };
    int64_t cursor = 0;
    int r = after != NULL ? parse_integer(after, "after", 0, INT64_MAX, &cursor, &err) : 0;
    if (r == 0)
        r = users_take(request->serve->users, request->who.uid, SHARE_LISTS, 1, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    struct journal *journal = xcalloc(1, sizeof(*journal));
    *journal = (struct journal){ .after = (uint64_t)cursor, .last = core_last_event(core) };
    request->work = journal;
    request->release = release_journal;
    request->on_drained = continue_journal;
    if (!request_start_stream(request, 200, "application/x-ndjson", STREAM_ENDLESS))
        return;
    write_line(request, json_pack("{s:s,s:o}", "schema", JOURNAL_SCHEMA, "settings", write_settings(core)));
    continue_journal(request);
}
