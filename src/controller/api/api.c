/* SPDX-License-Identifier: MIT */
#include "controller/api/api.h"

#include "controller/api/events.h"
#include "controller/api/jobs.h"
#include "controller/identity/rights.h"
#include "controller/api/route.h"
#include "controller/api/steps.h"
#include "controller/api/tokens.h"
#include "wire/json_text.h"

static bool is_admin(const struct serve *serve, uint32_t uid)
{
    return rights_role(serve, uid) == ROLE_ADMIN;
}

static void beat(struct serve *serve)
{
    tokens_end_expired(serve);
    events_beat(serve);
}

struct serve *api_new(struct controller *controller)
{
    static const struct serve_hooks hooks = {
        .dispatch = route_dispatch,
        .is_admin = is_admin,
        .beat = beat,
    };
    return serve_new(controller, &hooks);
}

void api_publish(struct serve *serve, const struct job_event *event, const struct job *job)
{
    events_publish(serve, event, job);
    steps_publish(serve, event);
}

char *api_describe(struct serve *serve, const struct job *job)
{
    if (serve == NULL)
        return NULL;
    json_t *object = jobs_write(serve, job, SHOW_JOB);
    char *text = json_text_format(object);
    json_decref(object);
    return text;
}
