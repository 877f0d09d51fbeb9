/* SPDX-License-Identifier: MIT */
#include "controller/reload.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "controller/config/settings.h"
#include "controller/retention.h"

#define QUEUE_MAX       2000000U
#define RECENT_DONE_MAX 5000U

struct core_options reload_core_options(const struct controller *controller)
{
    const struct controller_options *options = &controller->options;
    struct core_options core = {
        .boot_id = controller->boot_id,
        .admin_uid = controller->admin_uid,
        .queue_max = QUEUE_MAX,
        .user_queue_max = options->user_max_queued,
        .user_day_bytes = options->user_max_stored,
        .recent_done_max = RECENT_DONE_MAX,
        .grace_ms = options->grace_ms,
        .sched = options->sched,
        .external = options->external,
        .health = options->health,
        .idle = options->idle,
        .notifications = options->notifications,
        .loss = options->loss,
        .park = options->park,
        .early = options->early,
        .log_max = options->log_max,
        .is_tmp_private = options->is_tmp_private,
        .start_patience_ms = options->start_patience_ms,
        .max_time_ms = options->max_time_ms,
        .are_priorities_of_all = options->are_priorities_of_all,
        .default_time_ms = options->default_time_ms,
        .accounts = options->accounts,
        .n_accounts = options->n_accounts,
        .partitions = options->partitions,
        .n_partitions = options->n_partitions,
    };
    core.sched.preempt_grace_ms = options->grace_ms; // duration of a preemption
    return core;
}

void reload_warn(const struct controller_options *options)
{
    for (size_t i = 0; i < options->warnings.count; i++)
        log_warning("%s", options->warnings.items[i]);
}

struct reloading {
    const struct controller_options *options; // in force
    struct controller_options *fresh;
    size_t changes;
};

static const char *shown(const char *value)
{
    return value != NULL ? value : "unset";
}

/* A setting that is not changed keeps its value in the notes too, with the value that will follow. */
static void keep(struct reloading *reloading, const char *key, const char *before, const char *after)
{
    const struct setting_note *note = settings_find_note(reloading->options, key);
    const char *origin = note != NULL ? note->origin : "default";
    _cleanup_free_ char *text =
        xasprintf("%.*s; after a restart: %s", (int)strcspn(origin, ";"), origin, shown(after));
    settings_note(reloading->fresh, key, shown(before), text);
}

static void take_change(void *arg, const struct setting *setting, const char *before, const char *after)
{
    struct reloading *reloading = arg;
    reloading->changes++;
    log_info("%s: %s is now %s (%s)%s", setting->key, shown(before), shown(after), setting->origin,
        setting->is_live ? "" : "; takes effect after a restart of mgpud");
    if (!setting->is_live)
        keep(reloading, setting->key, before, after);
}

int reload(struct controller *controller, int argc, char **argv)
{
    struct controller_options fresh;
    struct settings_actions actions;
    struct error err = { 0 };
    int r = settings_default(&fresh, controller->is_root, &err);
    if (r == 0)
        r = settings_read(argc, argv, controller->is_root, &fresh, &actions, &err);
    if (r < 0) {
        log_error(
            "the settings were not changed: %s%s%s", err.message, err.hint[0] != '\0' ? "; " : "", err.hint);
        settings_clear(&fresh);
        return r;
    }
    if (settings_find_note(&fresh, "node") == NULL) { // as after the next start (own_name.c)
        free(fresh.node);
        fresh.node = xstrdup(controller->options.node);
    }
    struct reloading reloading = { .options = &controller->options, .fresh = &fresh };
    settings_compare(&controller->options, &fresh, take_change, &reloading);
    settings_take_up(&controller->options, &fresh);
    reload_warn(&controller->options);
    struct core_options options = reload_core_options(controller);
    core_configure(controller->core, clock_boot_ms(), clock_wall_ms(), &options);
    retention_replan(controller->retention);
    settings_clear(&fresh);
    log_info("the settings were reloaded: %zu changed", reloading.changes);
    return 0;
}
