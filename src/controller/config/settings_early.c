/* SPDX-License-Identifier: MIT */
/* Jobs that start on the CPU while their next GPUs are still in use (core/concerns/early.c), and elements of
 * arrays that are committed before their GPUs are free (core/concerns/behind.c). */
#include "controller/config/settings_early.h"

#include <errno.h>
#include <string.h>

#include "base/option_values.h"
#include "controller/config/options.h"

static const char *const mode_names[EARLY_MODES] = {
    [EARLY_NEVER] = "never", [EARLY_ASKED] = "asked", [EARLY_AUTO] = "auto"
};

static int set_mode(void *target, const char *value, struct error *err)
{
    struct controller_options *options = *(struct controller_options **)target;
    for (size_t mode = 0; mode < EARLY_MODES; mode++)
        if (strcmp(value, mode_names[mode]) == 0) {
            options->early.mode = (enum early_mode)mode;
            return 0;
        }
    (void)error_set(err, -EINVAL, "--early: invalid value '%.40s'", value);
    return error_hint(err,
        "never: no job starts before its GPUs are free; asked: those that request it; auto: also those "
        "whose command used its GPUs late in earlier runs");
}

const struct option_row early_rows[] = {
    { 0, "early", "never|asked|auto",
        "which jobs start before their GPUs are free: none, those that request it, or also those whose "
        "command used its GPUs late in earlier runs",
        set_mode, "asked" },
    { 0, "early-within", "TIME", "how long before its GPUs are probably free such a job can start",
        OPTION_INNER(duration, struct controller_options, early.within_ms), .preset = "2m" },
    { 0, "elements-ahead", "TIME",
        "time before the probable end of an array element at which the next one is committed to its GPUs; "
        "0: after its end",
        OPTION_INNER(duration, struct controller_options, early.elements_ms), .preset = "400ms" },
    { 0, NULL, NULL, NULL, NULL },
};
