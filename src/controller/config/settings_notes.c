/* SPDX-License-Identifier: MIT */
/*
 * Which settings are set, and where: for `mgpu config`, --check-config, and to report the changes of a
 * reload. Settings are compared as text, so another spelling of the same value counts as a change, but has no
 * effect.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "controller/config/settings.h"

#define DEFAULT "default"

static struct setting_note *find(const struct controller_options *options, const char *key)
{
    for (size_t i = 0; i < options->n_notes; i++)
        if (strcmp(options->notes[i].key, key) == 0)
            return &options->notes[i];
    return NULL;
}

const struct setting_note *settings_find_note(const struct controller_options *options, const char *key)
{
    return find(options, key);
}

void settings_note(struct controller_options *options, const char *key, const char *value, const char *origin)
{
    struct setting_note *note = find(options, key);
    if (note == NULL) {
        options->notes = xreallocarray(options->notes, options->n_notes + 1, sizeof(*options->notes));
        note = &options->notes[options->n_notes++];
        *note = (struct setting_note){ .key = xstrdup(key) };
    }
    free(note->value);
    free(note->origin);
    note->value = xstrdup(value != NULL ? value : "true");
    note->origin = xstrdup(origin);
}

void settings_note_file(struct controller_options *options, const char *path)
{
    options->files = xreallocarray(options->files, options->n_files + 1, sizeof(*options->files));
    options->files[options->n_files++] = xstrdup(path);
}

/* The row of that key; NULL: a setting of a user, a group or a role. */
static const struct option_row *find_row(const char *key, bool *ret_live)
{
    *ret_live = true;
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
        for (const struct option_row *row = table->rows; row->name != NULL; row++)
            if (strcmp(row->name, key) == 0) {
                *ret_live = table->is_live;
                return row;
            }
    return NULL;
}

/* Defaults that depend on the user who starts mgpud and on the directory. */
static const char *place_of(const struct controller_options *options, const char *key)
{
    const struct {
        const char *key, *value;
    } places[] = {
        { "state-dir", options->state_dir },
        { "run-dir", options->run_dir },
        { "log-dir", options->log_dir },
        { "node", options->node },
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strcmp(places[i].key, key) == 0)
            return places[i].value;
    return NULL;
}

static struct setting describe(const struct controller_options *options, const char *key)
{
    struct setting setting = { .key = key, .origin = DEFAULT };
    const struct option_row *row = find_row(key, &setting.is_live);
    const struct setting_note *note = find(options, key);
    if (row != NULL) {
        setting.help = row->help;
        setting.value = row->preset != NULL ? row->preset : place_of(options, key);
    }
    if (note != NULL) {
        setting.value = note->value;
        setting.origin = note->origin;
    }
    return setting;
}

void settings_visit(const struct controller_options *options, settings_visit_fn *visit, void *arg)
{
    bool is_live;
    for (const struct settings_table *table = settings_tables; table->rows != NULL; table++)
        for (const struct option_row *row = table->rows; row->name != NULL; row++) {
            struct setting setting = describe(options, row->name);
            visit(arg, &setting);
        }
    for (size_t i = 0; i < options->n_notes; i++) {
        struct setting setting = describe(options, options->notes[i].key);
        if (find_row(setting.key, &is_live) == NULL)
            visit(arg, &setting);
    }
}

struct comparison {
    const struct controller_options *before, *after;
    settings_change_fn *visit;
    void *arg;
    bool is_gone_only; // the second round: settings that are no longer set
};

static void compare_one(void *arg, const struct setting *setting)
{
    const struct comparison *comparison = arg;
    struct setting before = describe(comparison->before, setting->key);
    struct setting after = describe(comparison->after, setting->key);
    bool is_gone = find(comparison->after, setting->key) == NULL && after.help == NULL;
    if (is_gone == comparison->is_gone_only && !text_equal(before.value, after.value))
        comparison->visit(comparison->arg, &after, before.value, after.value);
}

void settings_compare(const struct controller_options *before, const struct controller_options *after,
    settings_change_fn *visit, void *arg)
{
    struct comparison comparison = { .before = before, .after = after, .visit = visit, .arg = arg };
    settings_visit(after, compare_one, &comparison);
    comparison.is_gone_only = true;
    settings_visit(before, compare_one, &comparison);
}
