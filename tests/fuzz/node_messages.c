/* SPDX-License-Identifier: MIT */
/*
 * A controller with jobs, and two nodes that say anything in any order: no message is an error of the
 * controller, and every event it stores can be applied to its job. The input is a sequence of steps. A
 * message may be about an attempt that was sent to the node, which no fuzzer would guess.
 */
#include "bench.h"
#include "fuzz.h"
#include "messages.h"

#define STEPS_MAX   400
#define SUBMITS_MAX 64

static char requests[SUBMITS_MAX + 1];

struct fuzz {
    struct bench *bench;
    struct input input;
    size_t submits;
    struct sent latest[2]; // LAUNCH of each link
};

static void remember(struct fuzz *fuzz)
{
    struct bench *bench = fuzz->bench;
    for (size_t i = 0; i < bench->n_sent; i++)
        if (bench->sent[i].id == MESSAGE_LAUNCH && bench->sent[i].link - 1 < 2)
            fuzz->latest[bench->sent[i].link - 1] = bench->sent[i];
    bench->n_sent = bench->n_published = bench->n_changes = bench->n_answers = 0;
}

static void say(struct fuzz *fuzz, uint32_t link, bool is_about_latest)
{
    struct bench *bench = fuzz->bench;
    const struct record_type *type = NULL;
    struct error err = { 0 };
    void *message = message_take(&fuzz->input, &type);
    if (message == NULL)
        return;
    if (is_about_latest && message_is_about_attempt(type->id)) {
        struct about *about = message;
        const struct sent *sent = &fuzz->latest[link - 1];
        about->id = (struct spool_id){ .job = sent->job, .attempt = sent->attempt, .rank = sent->rank };
        about->token = sent->token;
    }
    int r = type->id == MESSAGE_HELLO
                ? core_link_up(bench->core, bench->now_ms, bench->now_ms, link, message, &err)
                : core_link_message(bench->core, bench->now_ms, bench->now_ms, link, type->id, message, &err);
    if (r < 0)
        core_link_down(bench->core, bench->now_ms, bench->now_ms, link);
    message_free(type, message);
}

static void take_step(struct fuzz *fuzz)
{
    struct bench *bench = fuzz->bench;
    uint8_t op = input_byte(&fuzz->input);
    uint32_t link = 1 + (op >> 4 & 1);
    switch (op & 7) {
    case 0:
        if (fuzz->submits < SUBMITS_MAX)
            bench_submit(bench, 1000 + (op >> 6), op >> 5 & 3, NULL, &requests[fuzz->submits++]);
        break;
    case 1: (void)bench_hello_as(bench, link, link == 1 ? "one" : "two", op >> 5); break;
    case 2: core_link_down(bench->core, bench->now_ms, bench->now_ms, link); break;
    case 3:
        bench->now_ms += input_number(&fuzz->input);
        core_timer(bench->core, bench->now_ms, bench->now_ms);
        break;
    case 4: say(fuzz, link, false); break;
    case 5: bench_turn(bench); return;
    default: say(fuzz, link, true); break;
    }
    if ((op & 8) == 0)
        bench_settle(bench);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct fuzz fuzz = { .input = { bytes, length, 0 } };
    void *state = NULL;
    (void)bench_open(&state);
    fuzz.bench = state;
    for (size_t i = 0; i < STEPS_MAX && fuzz.input.at < length; i++) {
        take_step(&fuzz);
        remember(&fuzz);
    }
    (void)bench_close(&state);
    return 0;
}
