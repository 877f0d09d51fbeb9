/* SPDX-License-Identifier: MIT */
/* Nodes receive these times when they connect, so changes require a restart of mgpud. */
#include "controller/config/settings_loss.h"

#include <errno.h>
#include <stddef.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/options.h"

#define LOSS_MIN_MS 1000

static int option_set_second(void *target, const struct option_row *row, const char *value, struct error *err)
{
    const struct option_name what = option_name_of(row);
    int64_t ms = 0;
    int r = parse_duration(value, what.text, &ms, err);
    if (r < 0)
        return r;
    if (ms < LOSS_MIN_MS)
        return error_set(err, -ERANGE, "%s: '%.40s' is less than a second", what.text, value);
    *(int64_t *)option_member(target, row) = ms;
    return 0;
}

const struct option_row loss_rows[] = {
    { 0, "node-timeout", "SPAN", "time without messages after which a node is unreachable",
        OPTION_INNER(second, struct controller_options, loss.timeout_ms), .preset = "30s" },
    { 0, "node-lease", "SPAN", "time after which an unreachable node ends jobs to be requeued",
        OPTION_INNER(second, struct controller_options, loss.lease_ms), .preset = "5m" },
    { 0, NULL, NULL, NULL, NULL },
};
