/* SPDX-License-Identifier: MIT */
#include "controller/api/notices.h"

#include "controller/core/notification.h"
#include "wire/json_text.h"

static void add_notice(void *arg, const struct notice *notice, bool is_sending)
{
    json_t *array = arg, *object = json_object();
    bool is_waiting = notice->state == NOTICE_WAITING;
    (void)json_object_set_new(object, "event", json_string(notify_event_name(notice->event)));
    (void)json_object_set_new(object, "to", json_text_string(notice->to));
    (void)json_object_set_new(
        object, "state", json_string(is_sending ? "sending" : notice_state_name(notice->state)));
    (void)json_object_set_new(object, "made_at", json_text_time(notice->made_ms));
    (void)json_object_set_new(object, "over_at", json_text_time(notice->over_ms));
    (void)json_object_set_new(object, "tries", json_integer(notice->tries));
    (void)json_object_set_new(
        object, "next_at", json_text_time(is_waiting && !is_sending ? notice->due_ms : 0));
    (void)json_object_set_new(object, "error", json_text_string(notice->text));
    (void)json_array_append_new(array, object);
}

void notices_add(json_t *object, const struct core *core, const struct job *job)
{
    json_t *notices = json_array(), *notify = json_array();
    bool is_element = job->array_job != 0; // its array tells of it
    for (size_t i = 0; !is_element && i < job->ask->notify.count; i++)
        (void)json_array_append_new(notify, json_text_string(job->ask->notify.items[i]));
    core_each_notice(core, job->id, add_notice, notices);
    (void)json_object_set_new(object, "notify", notify);
    (void)json_object_set_new(object, "notify_on", json_text_string(is_element ? NULL : job->ask->notify_on));
    (void)json_object_set_new(object, "notices", notices);
}
