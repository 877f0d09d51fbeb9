/* SPDX-License-Identifier: MIT */
/*
 * The current helper samples all GPUs except those at which an earlier helper hung as a whole. (A GPU that
 * hangs later is reported as lost by the helper, which continues: gpu/pollers.h.) A failing GPU (it hangs,
 * has fallen off the bus, or is not listed any more) is probed from time to time: another helper includes it
 * and no other failing one. If the probe finds it healthy, the probe becomes the current helper; until then
 * the current one serves the other GPUs.
 *
 *      none ──due──> current ──hangs at GPU k──> dismissed; k fails; the next current at once, without k
 *        ^              │ └──ends, or the driver does not start──> dismissed; next one after a pause
 *        └──────────────┘
 *      failing ──due──> probe ──GPU healthy──> becomes current     ──anything else──> dismissed, longer pause
 *
 * When GPUs are to be released, or opened again, the current helper is replaced by one that opens the right
 * ones. A GPU counts as released when no process is left that may have it open.
 *
 * A dismissed process may stay in the kernel for long. While one hangs at a GPU, that GPU is not probed, and
 * while one hangs in the driver's start, nothing is started, because it would hang too. In addition, at most
 * GPU_HELPERS_MAX processes exist.
 */
#include "agent/gpu/helper.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/children.h"
#include "agent/gpu/failing_gpus.h"
#include "agent/gpu/gpu.h"
#include "agent/gpu/last_report.h"
#include "base/clock.h"
#include "base/gpu_vendor.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"

const struct gpu_helper_timing gpu_helper_defaults = {
    .period_ms = 1000,
    .notice_ms = 10000,
    .first_ms = 60000,
    .silent_ms = 5000,
    .leave_ms = 2000,
    .retry_first_ms = 1000,
    .retry_max_ms = 60000,
};

#define NEVER_MS  INT64_MAX
#define HANGS_MAX 2U // GPUs at which helpers hang one after the other before all GPUs count as lost

struct gpu_helper {
    struct event_base *base;
    struct gpu_spec spec;
    struct gpu_helper_timing timing;
    struct gpu_roster *roster;
    struct gpu_last_report last;
    struct gpu_children children;
    char trial_key[GPU_KEY_SIZE];
    char suspect[GPU_KEY_SIZE]; // where the last helper ended
    struct failing_gpus failing_gpus;
    struct event *timer;
    int64_t pause_ms, due_ms; // time of the next current helper
    unsigned failures;        // consecutive failures without a report
    bool is_settled;          // no report will follow
    uint64_t asked;           // looks in all
    uint64_t asked_old,
        asked_trial; // requested before the current helper and the probe existed; their first reports are the
                     // answer
    bool has_explained; // the current helper has reported why the driver does not work
};

static void schedule(struct gpu_helper *helper);
static void renew(struct gpu_helper *helper);

/* --- failing GPUs --- */

/* GPUs that the roster calls lost are listed as ailing, and those it calls healthy are removed. A GPU that
 * hangs and was never seen has only its key. */
static void review_failing_gpus(struct gpu_helper *helper)
{
    const struct record_list *gpus = gpu_roster_gpus(helper->roster);
    const struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++) {
        const char *key = states[i].pci;
        if (key == NULL || states[i].parent != NULL)
            continue; // without an address from the driver, or while a process hangs at it, it cannot be
                      // probed alone
        if (states[i].is_lost == 0 || gpu_roster_is_released(helper->roster, i)) {
            failing_gpus_remove(&helper->failing_gpus, key);
            continue;
        }
        if (failing_gpus_find(&helper->failing_gpus, key) == NULL)
            log_warning("GPU %u at %s is lost: %s", states[i].index, key, states[i].trouble);
        (void)failing_gpus_add(&helper->failing_gpus, key, gpu_roster_is_hung(helper->roster, i));
    }
}

/* --- processes --- */

/* The driver gets a long time to initialise its GPUs. It gets less if a GPU is known to be failing, so that
 * the others do not wait if opening that GPU hangs. */
static int64_t opening_ms(const struct gpu_helper *helper, bool is_trial)
{
    const struct gpu_helper_timing *timing = &helper->timing;
    bool is_short = !is_trial && helper->failing_gpus.count > 0 && timing->notice_ms < timing->first_ms;
    return is_short ? timing->notice_ms : timing->first_ms;
}

/* Opens all GPUs except those that hang or are released. A probe is started `with` one failing GPU and
 * without all other failing ones, which might hang too. */
static struct gpu_child *start_child(
    struct gpu_helper *helper, const char *with, const struct gpu_child_events *events)
{
    struct gpu_progress *page = gpu_progress_new();
    const struct failing_gpu *failing_gpus = helper->failing_gpus.items;
    bool is_fine = page != NULL && gpu_roster_set_progress(helper->roster, page);
    for (size_t i = 0; is_fine && i < helper->failing_gpus.count; i++)
        if (with == NULL ? failing_gpus[i].is_hung : strcmp(failing_gpus[i].key, with) != 0)
            is_fine = gpu_progress_leave_out(page, failing_gpus[i].key);
    if (is_fine)
        return gpu_child_start(
            helper->base, &helper->spec, &helper->timing, opening_ms(helper, with != NULL), page, events);
    gpu_progress_free(page);
    return NULL;
}

/* --- reports of the current helper --- */

/* Once GPUs were found, a temporarily unavailable driver does not change the kind of machine. */
static void keep_backend(struct gpu_helper *helper)
{
    const struct gpu_vendor *vendor = gpu_vendor_by_backend(gpu_roster_backend(helper->roster));
    if (helper->spec.kind != GPU_SPEC_AUTO || vendor == NULL)
        return;
    helper->spec.kind = GPU_SPEC_VENDOR;
    helper->spec.vendor = vendor->number;
}

static void take_report(struct gpu_helper *helper, struct gpu_report *fresh)
{
    struct gpu_state *states = fresh->gpus.items;
    for (size_t i = 0; i < fresh->gpus.count; i++)
        states[i].answers += helper->asked_old;
    if (fresh->is_on || fresh->is_final)
        gpu_roster_take(helper->roster, fresh);
    gpu_last_report_take(&helper->last, fresh);
    helper->has_explained = !helper->last.report.is_on && !helper->last.report.is_final;
    if (helper->has_explained)
        return; // its end follows
    keep_backend(helper);
    helper->failures = 0;
    helper->pause_ms = helper->timing.retry_first_ms;
    helper->suspect[0] = '\0';
    review_failing_gpus(helper);
    gpu_last_report_pass(&helper->last);
    schedule(helper);
}

static void on_current_report(void *arg, struct gpu_child *child, struct gpu_report *fresh)
{
    struct gpu_helper *helper = arg;
    bool is_final = fresh->is_final != 0, is_empty = fresh->is_on && fresh->gpus.count == 0;
    bool is_outdated = fresh->is_outdated != 0;
    int64_t pause_ms = helper->pause_ms;
    helper->is_settled = is_final && helper->spec.kind != GPU_SPEC_AUTO;
    bool is_partial =
        failing_gpus_have_hung(&helper->failing_gpus) || gpu_roster_count_released(helper->roster) > 0;
    take_report(helper, fresh);
    renew(helper); // requested while it was opening its GPUs
    if (helper->children.current != child || (!is_final && !is_outdated && !(is_empty && !is_partial)))
        return;
    /* A driver may be installed or start working later, and a new helper is needed to find other GPUs. */
    helper->children.current = NULL;
    gpu_children_dismiss(&helper->children, child);
    helper->due_ms = clock_boot_ms() + pause_ms;
    helper->pause_ms = failing_gpus_lengthen(&helper->failing_gpus, pause_ms);
    schedule(helper);
}

/* The GPU held responsible for the failure. If a helper ended while working on it, this must happen twice,
 * because a helper may also be killed by other causes. */
static const char *find_culprit(struct gpu_helper *helper, const struct gpu_child *child, bool is_silent)
{
    const char *key = gpu_child_key(child);
    bool is_again = strcmp(helper->suspect, key) == 0;
    (void)snprintf(helper->suspect, sizeof(helper->suspect), "%s", key);
    return *key != '\0' && (is_silent || is_again) ? key : NULL;
}

/* Helpers for the other GPUs continue at once. Before the first report there is nothing to pass on. */
static void leave_out(struct gpu_helper *helper, struct gpu_child *child, const char *key, bool is_silent)
{
    struct failing_gpu *failing_gpu = failing_gpus_add(&helper->failing_gpus, key, true);
    const char *why = is_silent ? "the driver does not respond to queries about it"
                                : "the driver's library crashes on queries about it";
    failing_gpu->stuck = child;
    failing_gpu->due_ms = clock_boot_ms() + failing_gpu->pause_ms;
    bool is_known = gpu_roster_hang(helper->roster, key, why);
    log_warning("GPU %s: %s; ignored, will be probed again", key, why);
    helper->due_ms = clock_boot_ms();
    if (++helper->failures > HANGS_MAX)
        gpu_last_report_pass_lost(&helper->last, "the GPU driver does not respond");
    if (!gpu_children_have_room(&helper->children))
        gpu_last_report_pass_lost(&helper->last, "too many GPU helper processes hang in the driver");
    else if (is_known && helper->last.has_report)
        gpu_last_report_pass(&helper->last);
}

/* One failure after reports is only a pause. The GPUs are unknown only if the next helper fails too, or
 * nothing can be tried. */
static void fail_whole(struct gpu_helper *helper, struct gpu_child *child, const char *why, bool is_silent)
{
    bool is_start = is_silent && !gpu_child_is_open(child);
    const char *text = helper->has_explained ? helper->last.report.text : why;
    log_warning("GPU helper: %s", text);
    if (is_start)
        helper->children.starting = child;
    helper->due_ms = clock_boot_ms() + helper->pause_ms;
    helper->pause_ms = failing_gpus_lengthen(&helper->failing_gpus, helper->pause_ms);
    if (++helper->failures > 1 || !helper->last.has_report || helper->has_explained || is_start)
        gpu_last_report_pass_lost(&helper->last, text);
}

static void on_current_failure(void *arg, struct gpu_child *child, const char *why, bool is_silent)
{
    struct gpu_helper *helper = arg;
    const char *culprit = find_culprit(helper, child, is_silent);
    helper->children.current = NULL;
    gpu_children_dismiss(&helper->children, child);
    if (culprit != NULL)
        leave_out(helper, child, culprit, is_silent);
    else
        fail_whole(helper, child, why, is_silent);
    schedule(helper);
}

/* --- trials --- */

static void end_trial(struct gpu_helper *helper, bool is_silent)
{
    struct gpu_child *child = helper->children.trial;
    struct failing_gpu *failing_gpu = failing_gpus_find(&helper->failing_gpus, helper->trial_key);
    helper->children.trial = NULL;
    gpu_children_dismiss(&helper->children, child);
    if (is_silent && !gpu_child_is_open(child) && *gpu_child_key(child) == '\0')
        helper->children.starting = child;
    if (failing_gpu == NULL)
        return;
    failing_gpus_back_off(&helper->failing_gpus, failing_gpu);
    if (strcmp(gpu_child_key(child), failing_gpu->key) == 0)
        failing_gpu->stuck = child;
}

/* A GPU without an address in the reports is healthy if another one reports at all. */
static bool is_well(const struct gpu_report *fresh, const char *key)
{
    const struct gpu_state *gpus = fresh->gpus.items;
    for (size_t i = 0; i < fresh->gpus.count; i++)
        if (text_equal(gpus[i].pci, key))
            return gpus[i].is_lost == 0;
    return fresh->is_on && *key == '#';
}

/* Repeats requests made since the trial was started, which the current helper has not received. */
static void ask_again(struct gpu_helper *helper)
{
    uint64_t missed = helper->asked - helper->asked_trial;
    helper->asked_old = helper->asked_trial;
    for (uint64_t i = 0; i < missed; i++)
        gpu_child_ask(helper->children.current, NULL);
}

/* The probe that becomes current has excluded all other failing GPUs. */
static void leave_out_others(struct gpu_helper *helper)
{
    for (size_t i = 0; i < helper->failing_gpus.count; i++) {
        struct failing_gpu *failing_gpu = &helper->failing_gpus.items[i];
        if (failing_gpu->is_hung)
            continue;
        failing_gpu->is_hung = true;
        (void)gpu_roster_hang(helper->roster, failing_gpu->key, NULL);
    }
}

static void on_trial_report(void *arg, struct gpu_child *child, struct gpu_report *fresh)
{
    struct gpu_helper *helper = arg;
    if (child == helper->children.current) { // it was promoted
        on_current_report(arg, child, fresh);
        return;
    }
    if (!is_well(fresh, helper->trial_key)) {
        end_trial(helper, false);
        schedule(helper);
        return;
    }
    log_info("GPU %s: it has recovered", helper->trial_key);
    failing_gpus_remove(&helper->failing_gpus, helper->trial_key);
    gpu_roster_forget_key(helper->roster, helper->trial_key);
    leave_out_others(helper);
    struct gpu_child *before = helper->children.current;
    helper->children.current = child;
    helper->children.trial = NULL;
    if (before != NULL)
        gpu_children_dismiss(&helper->children, before);
    gpu_roster_change_source(helper->roster, before != NULL);
    ask_again(helper);
    take_report(helper, fresh);
    renew(helper);
}

static void on_trial_failure(void *arg, struct gpu_child *child, const char *why, bool is_silent)
{
    struct gpu_helper *helper = arg;
    if (child == helper->children.current) {
        on_current_failure(arg, child, why, is_silent);
        return;
    }
    end_trial(helper, is_silent);
    schedule(helper);
}

/* --- GPUs that are released --- */

/* Replaces a helper that has the wrong GPUs open. One that is still opening its GPUs is replaced afterwards,
 * because it must not be killed meanwhile. */
static void renew(struct gpu_helper *helper)
{
    struct gpu_child *current = helper->children.current;
    if (current == NULL || !gpu_child_is_open(current) ||
        gpu_roster_fits(helper->roster, gpu_child_progress(current)))
        return;
    helper->children.current = NULL;
    gpu_children_dismiss(&helper->children, current);
    helper->due_ms = clock_boot_ms();
    schedule(helper);
}

void gpu_helper_release(struct gpu_helper *helper, const struct strings *uuids)
{
    if (!gpu_roster_release(helper->roster, uuids))
        return;
    renew(helper);
    (void)gpu_children_note_released(&helper->children, helper->roster);
    gpu_last_report_pass_released(&helper->last);
    schedule(helper);
}

/* --- the end of processes, and the timer --- */

static void on_gone(void *arg, struct gpu_child *child)
{
    struct gpu_helper *helper = arg;
    failing_gpus_free_stuck(&helper->failing_gpus, child);
    gpu_children_end(&helper->children, child);
    if (gpu_children_note_released(&helper->children, helper->roster))
        gpu_last_report_pass_released(&helper->last);
    schedule(helper);
}

static bool needs_current(const struct gpu_helper *helper)
{
    return helper->children.current == NULL && helper->children.starting == NULL &&
           !gpu_roster_is_all_released(helper->roster);
}

/* Only one at a time, and only while there is a current helper. */
static struct failing_gpu *next_trial(const struct gpu_helper *helper)
{
    bool may_try = helper->children.current != NULL && helper->children.trial == NULL &&
                   helper->children.starting == NULL;
    return may_try && helper->failures == 0 ? failing_gpus_next(&helper->failing_gpus) : NULL;
}

static void start_current(struct gpu_helper *helper)
{
    const struct gpu_child_events events = { on_current_report, on_current_failure, on_gone, helper };
    helper->has_explained = false;
    helper->asked_old = helper->asked;
    gpu_roster_change_source(helper->roster, false);
    helper->children.current = start_child(helper, NULL, &events);
    if (helper->children.current == NULL)
        fail_whole(helper, NULL, "cannot start the GPU helper process", false);
}

static void start_trial(struct gpu_helper *helper, struct failing_gpu *failing_gpu)
{
    const struct gpu_child_events events = { on_trial_report, on_trial_failure, on_gone, helper };
    (void)snprintf(helper->trial_key, sizeof(helper->trial_key), "%s", failing_gpu->key);
    helper->asked_trial = helper->asked;
    helper->children.trial = start_child(helper, failing_gpu->key, &events);
    if (helper->children.trial == NULL)
        failing_gpus_back_off(&helper->failing_gpus, failing_gpu);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gpu_helper *helper = arg;
    int64_t now_ms = clock_boot_ms();
    if (needs_current(helper) && helper->due_ms <= now_ms && gpu_children_have_room(&helper->children))
        start_current(helper);
    struct failing_gpu *failing_gpu = next_trial(helper);
    if (failing_gpu != NULL && failing_gpu->due_ms <= now_ms && gpu_children_have_room(&helper->children))
        start_trial(helper, failing_gpu);
    schedule(helper);
}

static void schedule(struct gpu_helper *helper)
{
    int64_t next_ms = NEVER_MS, now_ms = clock_boot_ms();
    const struct failing_gpu *failing_gpu = next_trial(helper);
    (void)evtimer_del(helper->timer);
    if (helper->is_settled || !gpu_children_have_room(&helper->children))
        return; // checked again when a process ends
    if (needs_current(helper))
        next_ms = helper->due_ms;
    if (failing_gpu != NULL && failing_gpu->due_ms < next_ms)
        next_ms = failing_gpu->due_ms;
    if (next_ms == NEVER_MS)
        return;
    int64_t left_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    const struct timeval time = { left_ms / 1000, left_ms % 1000 * 1000 };
    (void)evtimer_add(helper->timer, &time);
}

struct gpu_helper *gpu_helper_new(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, struct gpu_roster *roster, gpu_helper_fn *on_report, void *arg)
{
    struct gpu_helper *helper = xcalloc(1, sizeof(*helper));
    const struct record_list *gpus = gpu_roster_gpus(roster);
    helper->base = base;
    helper->spec = *spec;
    helper->timing = *timing;
    helper->failing_gpus.timing = &helper->timing;
    helper->roster = roster;
    helper->pause_ms = timing->retry_first_ms;
    helper->timer = evtimer_new(base, on_timer, helper);
    gpu_last_report_init(
        &helper->last, base, roster, &helper->spec, helper->timing.notice_ms, on_report, arg);
    keep_backend(helper);
    for (size_t i = 0; i < gpus->count; i++)
        if (gpu_roster_is_hung(roster, i) && ((const struct gpu_state *)gpus->items)[i].pci != NULL &&
            ((const struct gpu_state *)gpus->items)[i].parent == NULL)
            (void)failing_gpus_add(
                &helper->failing_gpus, ((const struct gpu_state *)gpus->items)[i].pci, true);
    const struct strings *keys = gpu_roster_keys(roster);
    for (size_t i = 0; i < keys->count; i++)
        (void)failing_gpus_add(&helper->failing_gpus, keys->items[i], true);
    (void)gpu_children_note_released(&helper->children, helper->roster);
    if (gpu_roster_is_all_released(helper->roster))
        gpu_last_report_pass_released(&helper->last);
    else
        start_current(helper);
    schedule(helper);
    return helper;
}

uint64_t gpu_helper_ask(struct gpu_helper *helper, const struct record_list *grants)
{
    helper->asked++;
    /* A helper that hangs reads nothing and is replaced; the next one answers all earlier requests. */
    if (helper->children.current != NULL)
        gpu_child_ask(helper->children.current, grants);
    else
        helper->asked_old++;
    return helper->asked;
}

void gpu_helper_repeat(struct gpu_helper *helper)
{
    if (!helper->last.has_report)
        return;
    helper->last.report.is_sample = 0;
    gpu_last_report_pass(&helper->last);
}

void gpu_helper_free(struct gpu_helper *helper)
{
    if (helper == NULL)
        return;
    gpu_children_clear(&helper->children);
    event_free(helper->timer);
    gpu_last_report_clear(&helper->last);
    free(helper->failing_gpus.items);
    free(helper);
}
