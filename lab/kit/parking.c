/* SPDX-License-Identifier: MIT */
#include "lab/kit/parking.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/probe.h"

#define ASK_MS  20000
#define LOOK_MS 100
#define NUMBER  32
#define LINE    300U

const char *const parking_gpu[] = { "-G", KIT_GPU, NULL };

static const char *write_number(int64_t job, char number[NUMBER])
{
    (void)snprintf(number, NUMBER, "%" PRId64, job);
    return number;
}

int64_t parking_start(struct kit *kit, const char *const *options, const char *const *arguments,
    size_t programs, int64_t most_ms, struct result *result)
{
    char line[LINE];
    int64_t job = probe_submit(kit, options, arguments, result);
    if (job < 0 || instance_await_output(kit, job, PARKING_READY, programs, most_ms) == 0)
        return job;
    _cleanup_free_ char *output = instance_output(kit, job);
    text_last_line(output, line, sizeof(line));
    result_fail(result, "job %" PRId64 " does not hold its memory: %s", job, line);
    return -1;
}

json_t *parking_await(struct kit *kit, int64_t job, const char *state, int64_t most_ms)
{
    char number[NUMBER];
    const char *const show[] = { "show", write_number(job, number), NULL };
    int64_t end_ms = clock_boot_ms() + kit_left_ms(kit, most_ms);
    for (;;) {
        struct error err = { 0 };
        json_t *record = NULL;
        (void)instance_ask(kit, show, ASK_MS, &record, &err);
        const char *park = record_word(record, "park");
        bool is_refused = park[0] == '\0' && record_word(record, "park_text")[0] != '\0';
        bool has_ended = record_word(record, "ended_at")[0] != '\0';
        if (record != NULL && (strcmp(park, state) == 0 || is_refused || has_ended))
            return record;
        if (clock_boot_ms() > end_ms)
            return record;
        json_decref(record);
        (void)poll(NULL, 0, LOOK_MS);
    }
}

/* Why the job was not parked. If it has ended since, its events say so, or it ended before. */
static const char *refusal_of(const json_t *record)
{
    const char *why = record_word(record, "park_text");
    size_t index = 0;
    json_t *event = NULL;
    json_array_foreach(json_object_get(record, "events"), index, event)
    {
        if (strcmp(record_word(event, "type"), "unparked") == 0)
            why = record_word(event, "message");
    }
    if (why[0] == '\0' && record_word(record, "ended_at")[0] != '\0')
        why = "it had ended before";
    return why[0] != '\0' ? why : "no reason was given";
}

bool parking_park(struct kit *kit, int64_t job, int64_t most_ms, struct result *result)
{
    char number[NUMBER];
    const char *const park[] = { "park", write_number(job, number), NULL };
    struct error err = { 0 };
    int64_t begin_ms = clock_boot_ms();
    if (instance_ask(kit, park, ASK_MS, NULL, &err) != 0) {
        result_skip(result, "the job cannot be parked: %s", err.message);
        return false;
    }
    json_t *record = parking_await(kit, job, "parked", most_ms);
    const char *state = record_word(record, "park");
    bool is_parked = strcmp(state, "parked") == 0;
    result_fact(result, "park_ms", json_integer(clock_boot_ms() - begin_ms));
    if (!is_parked && state[0] == '\0')
        result_skip(result, "the job was not parked: %s", refusal_of(record));
    else if (!is_parked)
        result_fail(result, "after %lld s it is still %s", (long long)most_ms / 1000, state);
    json_decref(record);
    return is_parked;
}

bool parking_return(struct kit *kit, int64_t job, int64_t most_ms, struct result *result)
{
    char number[NUMBER];
    const char *const unpark[] = { "unpark", write_number(job, number), NULL };
    struct error err = { 0 };
    int64_t begin_ms = clock_boot_ms();
    int status = instance_ask(kit, unpark, ASK_MS, NULL, &err);
    json_t *record = status == 0 ? parking_await(kit, job, "", most_ms) : NULL;
    bool is_back = record != NULL && record_word(record, "park")[0] == '\0';
    result_fact(result, "unpark_ms", json_integer(clock_boot_ms() - begin_ms));
    json_decref(record);
    if (!is_back)
        result_fail(result, "the job did not come back: %s", err.message);
    return is_back;
}

bool parking_cycle(struct kit *kit, int64_t job, int64_t most_ms, struct result *result)
{
    return parking_park(kit, job, most_ms, result) && parking_return(kit, job, most_ms, result);
}

void parking_let_go(struct kit *kit, int64_t job)
{
    char number[NUMBER];
    const char *const proceed[] = { "signal", write_number(job, number), "CONT", NULL };
    struct error err = { 0 };
    (void)instance_ask(kit, proceed, ASK_MS, NULL, &err);
}

void parking_judge(struct kit *kit, int64_t job, const char *done, struct result *result)
{
    parking_let_go(kit, job);
    json_t *record = probe_wait(kit, job, PARKING_END_MS, result);
    if (record != NULL && strcmp(record_word(record, "state"), "done") != 0)
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else if (record != NULL && result->outcome != OUTCOME_FAILED)
        result_pass(result, "%s", done);
    json_decref(record);
}

void parking_try(struct kit *kit, int64_t job, const char *right, struct result *result)
{
    struct result attempt = { 0 };
    bool is_back = parking_cycle(kit, job, PARKING_MS, &attempt);
    result_fact(result, "attempt", attempt.facts != NULL ? attempt.facts : json_null());
    if (attempt.outcome == OUTCOME_FAILED)
        result_fail(result, "%s", attempt.text);
    _cleanup_free_ char *done = xasprintf("%s; %s", is_back ? "parked and resumed" : attempt.text, right);
    parking_judge(kit, job, done, result);
}
