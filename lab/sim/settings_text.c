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
#define ROW(kind_, name_, member_) { #name_, VALUE_##kind_, offsetof(struct sched_settings, member_) },
    SCHED_SETTINGS_TABLE(ROW)
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
