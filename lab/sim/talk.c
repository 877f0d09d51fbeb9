/* SPDX-License-Identifier: MIT */
/* Everything that is not a result is printed to standard error. */
#include "lab/sim/talk.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/strings.h"

#define NAMES_MAX      64U
#define CALLS_PER_LOOK 1024U
#define QUIET_MS       1000 // at first, no progress is shown
#define PERIOD_MS      100
#define BAR_WIDTH      30U

int talk_error(const struct error *err, int status)
{
    (void)fprintf(stderr, "mgpu-sim: %s\n", err->message);
    if (err->hint[0] != '\0')
        (void)fprintf(stderr, "  %s\n", err->hint);
    return status;
}

void talk_help(const struct sim_command *command, const struct option_row *rows)
{
    (void)printf("usage: mgpu-sim %s\n\n%s\n\noptions:\n", command->usage, command->summary);
    options_print(rows, stdout);
}

int talk_parse(const struct sim_command *command, int argc, char **argv, const struct option_row *rows,
    void *target, int least, int most, int *ret_first, struct error *err)
{
    const struct option_row *const tables[] = { rows, NULL };
    int first = 0;
    int result = options_parse(argc, argv, tables, target, false, &first, err);
    if (result < 0)
        return result;
    *ret_first = first;
    if (argc - first >= least && argc - first <= most)
        return 0;
    (void)error_set(err, -EINVAL, argc - first < least ? "%s: missing argument" : "%s: too many arguments",
        command->name);
    return error_hint(err, "usage: mgpu-sim %s", command->usage);
}

int talk_unknown(const char *what, const char *value, const char *const *names, struct error *err)
{
    const char *near = text_nearest(value, names);
    (void)error_set(err, -EINVAL, "unknown %s '%.60s'", what, value);
    if (near != NULL)
        return error_hint(err, "did you mean '%s'?", near);
    size_t length = 0;
    char list[200] = "";
    for (size_t i = 0; names[i] != NULL && length < sizeof(list) - 40; i++)
        length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i > 0 ? ", " : "", names[i]);
    return error_hint(err, "there are %s", list);
}

int talk_policy(const char *what, const char *value, const struct policy **ret, struct error *err)
{
    const char *names[NAMES_MAX] = { NULL };
    for (size_t i = 0; policies[i] != NULL && i < NAMES_MAX - 1; i++)
        names[i] = policies[i]->name;
    const struct policy *policy = policy_find(value);
    if (policy == NULL)
        return talk_unknown(what, value, names, err);
    *ret = policy;
    return 0;
}

int talk_placement(const char *what, const char *value, const struct placement **ret, struct error *err)
{
    const char *names[NAMES_MAX] = { NULL };
    for (size_t i = 0; placements[i] != NULL && i < NAMES_MAX - 1; i++)
        names[i] = placements[i]->name;
    const struct placement *placement = placement_find(value);
    if (placement == NULL)
        return talk_unknown(what, value, names, err);
    *ret = placement;
    return 0;
}

/* --- progress --- */

void progress_begin(struct progress *progress, bool is_on)
{
    *progress = (struct progress){ .is_on = is_on, .begin_ms = clock_boot_ms() };
}

void progress_show(struct progress *progress, size_t done, size_t total)
{
    if (!progress->is_on || progress->calls++ % CALLS_PER_LOOK != 0)
        return;
    int64_t now_ms = clock_boot_ms(), elapsed_ms = now_ms - progress->begin_ms;
    if (elapsed_ms < QUIET_MS || now_ms - progress->shown_ms < PERIOD_MS)
        return;
    progress->shown_ms = now_ms;
    progress->is_shown = true;
    double part = total == 0 ? 1 : (double)done / (double)total;
    char bar[BAR_WIDTH + 1], left[32] = "?";
    for (size_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = (double)i < part * BAR_WIDTH ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    if (part > 0)
        format_duration((int64_t)((double)elapsed_ms * (1 - part) / part), left, sizeof(left));
    (void)fprintf(
        stderr, "\r\033[K[%s] %3.0f %%  %zu of %zu jobs, about %s left", bar, 100 * part, done, total, left);
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown)
        (void)fputs("\r\033[K", stderr);
}
