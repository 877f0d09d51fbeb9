/* SPDX-License-Identifier: MIT */
/* Nodes receive these times when they connect, so changes require a restart of mgpud. */
#include "controller/config/settings_loss.h"

#include <errno.h>
#include <stddef.h>

#include "base/parse.h"
#include "controller/config/options.h"

#define LOSS_MIN_MS 1000

static int set_time(int64_t *field, const char *what, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(value, what, &ms, err);
    if (r < 0)
        return r;
    if (ms < LOSS_MIN_MS)
        return error_set(err, -ERANGE, "%s: '%.40s' is less than a second", what, value);
    *field = ms;
    return 0;
}

static int set_timeout(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    return set_time(&options->loss.timeout_ms, "--node-timeout", value, err);
}

static int set_lease(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    return set_time(&options->loss.lease_ms, "--node-lease", value, err);
}

const struct option_row loss_rows[] = {
    { 0, "node-timeout", "SPAN", "time without messages after which a node is unreachable", set_timeout,
        "30s" },
    { 0, "node-lease", "SPAN", "time after which an unreachable node ends jobs to be requeued", set_lease,
        "5m" },
    { 0, NULL, NULL, NULL, NULL },
};
