/* SPDX-License-Identifier: MIT */
#include "controller/http/slices.h"

#include "controller/http/fair_queue.h"

#define SLICE_BYTES ((size_t)128 << 10)

bool slices_is_full(const struct slices *slices)
{
    return slices->bytes.length >= SLICE_BYTES;
}

void slices_begin(struct request *request, void (*fill)(struct request *request))
{
    struct slices *slices = request->work;
    slices->fill = fill;
    fill(request);
}

void slices_clear(struct request *request)
{
    struct slices *slices = request->work;
    if (slices->is_counted)
        users_give(request->serve->users, request->who.uid, SHARE_LISTS, 1);
    buffer_clear(&slices->bytes);
}

static void fill_if_room(struct request *request)
{
    const struct slices *slices = request->work;
    if (request_room(request) < SLICE_BYTES)
        return;
    request->on_drained = NULL;
    fair_queue_add(request, slices->fill);
}

static const char *type_of(const struct slices *slices)
{
    return slices->type != NULL ? slices->type : "application/json";
}

/* Starts a long response. */
static bool start_stream(struct request *request)
{
    struct slices *slices = request->work;
    struct error err = { 0 };
    if (users_take(request->serve->users, request->who.uid, SHARE_LISTS, 1, &err) < 0) {
        request_reply_problem(request, &err);
        return false;
    }
    slices->is_counted = true;
    return request_start_stream(request, 200, type_of(slices), STREAM_ENDLESS);
}

static void send_slice(struct request *request)
{
    struct slices *slices = request->work;
    struct buffer *bytes = &slices->bytes;
    if (slices->is_last && request->phase == REQUEST_OPEN) {
        request_reply_bytes(request, 200, type_of(slices), bytes->bytes, bytes->length);
        return;
    }
    if (request->phase == REQUEST_OPEN && !start_stream(request))
        return;
    request_stream(request, bytes->bytes, bytes->length);
    bytes->length = 0;
    if (slices->is_last) {
        request_end_stream(request);
        return;
    }
    request->on_drained = fill_if_room;
    fill_if_room(request);
}

static void on_durable(struct request *request, const struct core_answer *answer)
{
    send_slice(request);
}

void slices_send(struct request *request)
{
    const struct slices *slices = request->work;
    if (slices->is_immediate) {
        send_slice(request);
        return;
    }
    request->on_answer = on_durable;
    core_barrier(request->serve->controller->core, request);
}
