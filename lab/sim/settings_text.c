/* SPDX-License-Identifier: MIT */
/* One table row per number; unknown keys are ignored, because a journal of a later version may have more. */
#include "lab/sim/settings_text.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum value_kind { VALUE_U32, VALUE_MS, VALUE_REAL };

static const struct setting {
    const char *key;
    enum value_kind kind;
    size_t offset;
} settings_table[] = {
    { "reservations", VALUE_U32, offsetof(struct sched_settings, reservations) },
    { "half_life_ms", VALUE_MS, offsetof(struct sched_settings, half_life_ms) },
    { "age_cap_ms", VALUE_MS, offsetof(struct sched_settings, age_cap_ms) },
    { "default_run_ms", VALUE_MS, offsetof(struct sched_settings, default_run_ms) },
    { "node_jobs", VALUE_U32, offsetof(struct sched_settings, node_jobs) },
    { "node_starts", VALUE_U32, offsetof(struct sched_settings, node_starts) },
    { "unused_ms", VALUE_MS, offsetof(struct sched_settings, unused_ms) },
    { "preempt_grace_ms", VALUE_MS, offsetof(struct sched_settings, preempt_grace_ms) },
    { "preempt_cost_ms", VALUE_MS, offsetof(struct sched_settings, preempt_cost_ms) },
    { "preempt_cost_wide_ms", VALUE_MS, offsetof(struct sched_settings, preempt_cost_wide_ms) },
    { "quantum_ms", VALUE_MS, offsetof(struct sched_settings, quantum_ms) },
    { "parking", VALUE_U32, offsetof(struct sched_settings, parking) },
    { "park_cost_ms", VALUE_MS, offsetof(struct sched_settings, park_cost_ms) },
    { "user_max_jobs", VALUE_U32, offsetof(struct sched_settings, user_limits.jobs) },
    { "user_max_gpu_milli", VALUE_U32, offsetof(struct sched_settings, user_limits.gpu_milli) },
    { "user_max_gpu_seconds", VALUE_REAL, offsetof(struct sched_settings, user_limits.gpu_seconds) },
    { "group_max_jobs", VALUE_U32, offsetof(struct sched_settings, group_limits.jobs) },
    { "group_max_gpu_milli", VALUE_U32, offsetof(struct sched_settings, group_limits.gpu_milli) },
    { "group_max_gpu_seconds", VALUE_REAL, offsetof(struct sched_settings, group_limits.gpu_seconds) },
};

static void set_number(struct sched_settings *settings, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof(settings_table) / sizeof(settings_table[0]); i++) {
        const struct setting *row = &settings_table[i];
        void *member = (char *)settings + row->offset;
        if (strcmp(row->key, key) != 0)
            continue;
        if (row->kind == VALUE_U32)
            *(uint32_t *)member = (uint32_t)strtoul(value, NULL, 10);
        else if (row->kind == VALUE_MS)
            *(int64_t *)member = strtoll(value, NULL, 10);
        else
            *(double *)member = strtod(value, NULL);
    }
}

static int set_one(struct sched_settings *settings, const char *key, const char *value, struct error *err)
{
    if (strcmp(key, "policy") == 0 && (settings->policy = policy_find(value)) == NULL)
        return error_set(err, -EPROTO, "unknown policy '%.60s'", value);
    if (strcmp(key, "placement") == 0 && (settings->placement = placement_find(value)) == NULL)
        return error_set(err, -EPROTO, "unknown placement '%.60s'", value);
    set_number(settings, key, value);
    return 0;
}

int settings_text_read(const char *text, struct sched_settings *ret, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = NULL;
    int r = 0;
    sched_settings_init(ret);
    for (char *line = strtok_r(copy, "\n", &rest); r == 0 && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        r = set_one(ret, line, equals + 1, err);
    }
    return r;
}
