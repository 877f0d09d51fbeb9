/* SPDX-License-Identifier: MIT */
#include "controller/api/notifications.h"

#include "controller/core/notification.h"
#include "wire/json_text.h"

static void add_notification(void *arg, const struct notification *notification, bool is_sending)
{
    json_t *array = arg, *object = json_object();
    bool is_waiting = notification->state == NOTIFICATION_WAITING;
    (void)json_object_set_new(object, "event", json_string(notify_event_name(notification->event)));
    (void)json_object_set_new(object, "to", json_text_string(notification->to));
    (void)json_object_set_new(
        object, "state", json_string(is_sending ? "sending" : notification_state_name(notification->state)));
    (void)json_object_set_new(object, "made_at", json_text_time(notification->made_ms));
    (void)json_object_set_new(object, "over_at", json_text_time(notification->over_ms));
    (void)json_object_set_new(object, "tries", json_integer(notification->tries));
    (void)json_object_set_new(
        object, "next_at", json_text_time(is_waiting && !is_sending ? notification->due_ms : 0));
    (void)json_object_set_new(object, "error", json_text_string(notification->text));
    (void)json_array_append_new(array, object);
}

void notifications_add(json_t *object, const struct core *core, const struct job *job)
{
    json_t *notifications = json_array(), *notify = json_array();
    bool is_element = job->array_job != 0; // its array tells of it
    for (size_t i = 0; !is_element && i < job->ask->notify.count; i++)
        (void)json_array_append_new(notify, json_text_string(job->ask->notify.items[i]));
    core_each_notification(core, job->id, add_notification, notifications);
    (void)json_object_set_new(object, "notify", notify);
    (void)json_object_set_new(object, "notify_on", json_text_string(is_element ? NULL : job->ask->notify_on));
    (void)json_object_set_new(object, "notices", notifications);
}
