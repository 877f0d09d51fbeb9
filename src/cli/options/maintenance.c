/* SPDX-License-Identifier: MIT */
/* The end time is sent as an absolute time. */
#include "cli/options/maintenance.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/option_values.h"
#include "base/utc.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/term/when.h"

static struct maintenance_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_until(void *target, const char *value, struct error *err)
{
    int64_t now_ms = clock_wall_ms(), until_ms = 0;
    int r = when_parse(value, "--until", now_ms, &when_local, &until_ms, err);
    if (r < 0)
        return r;
    if (until_ms <= now_ms)
        return error_set(err, -EINVAL, "--until: '%.60s' has already passed", value);
    options_of(target)->until_ms = until_ms;
    return 0;
}

const struct option_row maintenance_wait_rows[] = {
    { 0, "wait", NULL, "return when no job is running there any more",
        OPTION_INNER(flag, struct maintenance_options, is_waiting) },
    { 0 },
};

const struct option_row maintenance_reason_rows[] = {
    { 0, "reason", "TEXT", "how you know that it is off, for the record",
        OPTION_INNER(text, struct maintenance_options, reason) },
    { 0 },
};

const struct option_row maintenance_rows[] = {
    { 0, "reason", "TEXT", "reason, shown to waiting users",
        OPTION_INNER(text, struct maintenance_options, reason) },
    { 0, "until", "TIME", "resume automatically then: 18:00, 'Fri 18:00', +2h", set_until },
    { 0 },
};

int maintenance_post(struct call *call, const char *path, json_t *body, struct error *err)
{
    const struct maintenance_options *options = call->options;
    _cleanup_json_ json_t *answer = NULL;
    char until[64];
    json_t *reason = options->reason == NULL ? NULL : json_string(options->reason);
    if (options->reason != NULL && reason == NULL)
        return error_set(err, -EINVAL, "--reason: the text is not UTF-8");
    if (reason != NULL)
        (void)json_object_set_new(body, "reason", reason);
    utc_format(options->until_ms, until, sizeof(until));
    if (options->until_ms > 0)
        (void)json_object_set_new(body, "until", json_string(until));
    int r = client_call(&call->client, "POST", path, body, &answer, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_page(answer, stdout);
    }
    return EXIT_OK;
}
