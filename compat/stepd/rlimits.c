/* SPDX-License-Identifier: MIT */
/* Soft limits only: the hard ones are those that the node has given to the job. */
#include "compat/stepd/rlimits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "base/parse.h"

static const struct {
    const char *variable;
    int resource;
} limits[] = { { "SLURM_RLIMIT_AS", RLIMIT_AS }, { "SLURM_RLIMIT_CORE", RLIMIT_CORE },
    { "SLURM_RLIMIT_CPU", RLIMIT_CPU }, { "SLURM_RLIMIT_DATA", RLIMIT_DATA },
    { "SLURM_RLIMIT_FSIZE", RLIMIT_FSIZE }, { "SLURM_RLIMIT_MEMLOCK", RLIMIT_MEMLOCK },
    { "SLURM_RLIMIT_NOFILE", RLIMIT_NOFILE }, { "SLURM_RLIMIT_NPROC", RLIMIT_NPROC },
    { "SLURM_RLIMIT_RSS", RLIMIT_RSS }, { "SLURM_RLIMIT_STACK", RLIMIT_STACK } };
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

void rlimits_collect(struct strings *variables)
{
    for (size_t i = 0; i < LIMITS; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) < 0)
            continue;
        int64_t value = limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur; // RLIM_INFINITY
        _cleanup_free_ char *text = xasprintf("%" PRId64, value);
        strings_set_env(variables, limits[i].variable, text);
    }
}

void rlimits_apply(const struct strings *variables)
{
    for (size_t i = 0; i < LIMITS; i++) {
        const char *text = strings_get_env(variables, limits[i].variable);
        struct rlimit limit;
        int64_t value = 0;
        if (text == NULL || parse_integer(text, limits[i].variable, 0, INT64_MAX, &value, NULL) < 0 ||
            getrlimit(limits[i].resource, &limit) < 0)
            continue;
        rlim_t soft = value == INT64_MAX ? RLIM_INFINITY : (rlim_t)value;
        limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
        (void)setrlimit(limits[i].resource, &limit);
    }
}

void rlimits_forget(void)
{
    for (size_t i = 0; i < LIMITS; i++)
        (void)unsetenv(limits[i].variable);
}
