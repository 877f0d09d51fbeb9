/* SPDX-License-Identifier: MIT */
/* /reservations: GPUs reserved for some users for some time. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/routes.h"
#include "controller/http/request.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/requests.h"

static json_t *write_reservation(struct serve *serve, const struct sched_reservation *reservation)
{
    json_t *users = json_array(), *object = json_object();
    for (size_t i = 0; i < reservation->n_uids; i++)
        (void)json_array_append_new(
            users, json_text_string(usernames_name(serve->names, reservation->uids[i])));
    _cleanup_free_ char *ids = core_gpu_list(serve->controller->core, reservation->gpus, reservation->n_gpus);
    bool has_begun = reservation->from_ms <= clock_wall_ms();
    bool has_name = reservation->name != NULL && reservation->name[0] != '\0';
    (void)json_object_set_new(object, "id", json_integer((json_int_t)reservation->id));
    (void)json_object_set_new(object, "name", json_text_string(has_name ? reservation->name : NULL));
    (void)json_object_set_new(object, "gpus", json_integer((json_int_t)reservation->n_gpus));
    (void)json_object_set_new(object, "gpu_ids", json_text_string(ids));
    (void)json_object_set_new(object, "users", users);
    (void)json_object_set_new(object, "from", json_text_time(reservation->from_ms));
    (void)json_object_set_new(object, "until", json_text_time(reservation->until_ms));
    (void)json_object_set_new(object, "state", json_string(has_begun ? "active" : "planned"));
    return object;
}

void handle_reservations(struct request *request)
{
    size_t count = 0;
    const struct sched_reservation *rows = core_reservations(request->serve->controller->core, &count);
    json_t *array = json_array(), *body = json_object();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, write_reservation(request->serve, &rows[i]));
    (void)json_object_set_new(body, "reservations", array);
    request_hold_json(request, 200, body);
}

static void on_reserved(struct request *request, const struct core_answer *answer)
{
    size_t count = 0;
    const struct sched_reservation *rows = core_reservations(request->serve->controller->core, &count);
    if (answer->code < 0) {
        request_reply_problem(request, &answer->err);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].id == answer->job)
            request_reply_json(request, 201, write_reservation(request->serve, &rows[i]));
    request_reply_json(request, 201, json_pack("{s:I}", "id", (json_int_t)answer->job)); // over already
}

/* Converts names to numbers: "1000,1001". */
static int read_users(struct request *request, const struct strings *users, char **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int r = 0;
    for (size_t i = 0; r == 0 && i < users->count; i++) {
        uint32_t uid = 0;
        r = usernames_uid(request->serve->names, users->items[i], &uid, err);
        if (r < 0)
            r = error_set(err, -EINVAL, "users: there is no user '%.60s'", users->items[i]);
        buffer_printf(&text, "%s%" PRIu32, i > 0 ? "," : "", uid);
    }
    *ret = r == 0 && text.length > 0 ? buffer_take(&text) : NULL;
    return r;
}

static int make_change(struct request *request, const struct reserve_request *asked,
    struct cluster_change *ret, struct error *err)
{
    int64_t now_ms = clock_wall_ms();
    *ret = (struct cluster_change){ .kind = CHANGE_RESERVE, .from_ms = asked->from };
    if ((asked->gpus > 0) == (asked->gpu_ids != NULL))
        return error_set(err, -EINVAL, "a reservation needs either gpus or gpu_ids");
    if (asked->for_s <= 0 || asked->for_s > LIMIT_RESERVE_S)
        return error_set(
            err, -ERANGE, "for_s: %" PRId64 " is outside 1 to %d", asked->for_s, LIMIT_RESERVE_S);
    ret->until_ms = (asked->from != 0 ? asked->from : now_ms) + asked->for_s * 1000;
    ret->gpus = asked->gpus;
    ret->gpu_ids = xstrdup(asked->gpu_ids);
    ret->text = xstrdup(asked->name);
    return read_users(request, &asked->users, &ret->users, err);
}

void handle_reserve(struct request *request)
{
    struct error err = { 0 };
    struct reserve_request asked = { 0 };
    _cleanup_(cluster_change_clear) struct cluster_change change = { 0 };
    int r = request_read_body(request, &reserve_request_record, &asked, &err);
    if (r == 0)
        r = make_change(request, &asked, &change, &err);
    record_clear(&reserve_request_record, &asked);
    if (r < 0) {
        request_reply_problem(request, &err);
    } else {
        request->on_answer = on_reserved;
        core_reserve(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
            &change, request);
    }
}

static void on_unreserved(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        request_reply_json(request, 200, json_object());
}

void handle_unreserve(struct request *request)
{
    request->on_answer = on_unreserved;
    core_unreserve(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
        request->job, request);
}
