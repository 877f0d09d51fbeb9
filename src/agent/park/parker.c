/* SPDX-License-Identifier: MIT */
/*
 * One order:
 *
 *   park     HELPING ──saved──> LEAVING ──its GPUs are clean──> reported
 *               │                  └──something is still on them──> UNDOING ──> reported: refused
 *               └──refused, lost──> reported
 *   return   CLEARING ──its GPUs are clean──> HELPING ──> reported
 *               └──they are not──> reported: refused
 *   check    CHECKING ──its GPUs are clean, or not──> reported: nothing was changed
 *
 * An order to return that was refused is not retried when it arrives again: the refusal may be on its way to
 * the controller, which then gives the GPUs to other jobs and sends a new order with another number. Only
 * ranks of a job on several nodes get the same number again, and keep their GPUs until all are back.
 *
 * An order to return with the number of a save in progress ends that save: its helper is told to undo it. The
 * spool records that the attempt has begun to return before the helper is started, because the helper may
 * outlive two agents. A check that arrives then is answered with the return.
 *
 * The helper of an earlier agent may still be running. A second helper then exits at once, and is started
 * again after a short time, until the lock is free and the first one's result exists.
 *
 * An attempt that started early, as its entry shows, was never saved: the launcher lets it open its GPUs.
 *
 * A helper that hangs in the driver is not killed. It is notified that the agent no longer waits: it undoes
 * its changes when the driver responds, and the order is reported as refused.
 */
#include "agent/park/parker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/host/helper_rights.h"
#include "agent/park/grant.h"
#include "agent/park/helper.h"
#include "agent/park/park_notice.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"

#define BUSY_MS     100   // between attempts while another helper is running
#define LATE_MS     10000 // after its own time limit, a helper hangs in the driver
#define HELPERS_MAX 3     // helpers that may die without a result

enum step { HELPING, LEAVING, CLEARING, CHECKING, UNDOING, OVER };

struct parking {
    struct parker *parker;
    struct message_park order;
    enum step step;
    struct child *child; // its helper
    struct event *timer; // for the next attempt, or the time limit
    bool is_given_up;    // reported; the helper still hangs
    bool was_parked;     // before this order, which only changes the number
    int helpers;         // helpers that died without a result
    int64_t until_ms;    // boot clock
    char *why;           // while UNDOING: the reason to report
    struct parking *next;
};

struct parker {
    struct parker_parts parts;
    struct parking *first;
    struct message_gpus last; // the GPUs of the last report
};

static void advance(struct parking *parking);

static int read_entry(const struct parking *parking, struct launch_park *ret)
{
    _cleanup_close_ int dirfd = launcher_open_entry(parking->parker->parts.launcher, &parking->order.id);
    return dirfd < 0 ? dirfd : file_read_record(dirfd, SPOOL_PARK, &launch_park_record, ret, NULL);
}

static void parking_free(struct parking *parking)
{
    struct parking **at = &parking->parker->first;
    while (*at != parking)
        at = &(*at)->next;
    *at = parking->next;
    child_free(parking->child);
    event_free(parking->timer);
    gpu_grants_clear(&parking->order.gpus);
    free(parking->why);
    free(parking);
}

static void arm(struct parking *parking, int64_t after_ms)
{
    struct timeval time = { after_ms / 1000, after_ms % 1000 * 1000 };
    (void)evtimer_add(parking->timer, &time);
}

static void report(struct parking *parking, enum park_outcome outcome, uint64_t bytes, char *text)
{
    const struct parker_parts *parts = &parking->parker->parts;
    struct message_park_result result = { .id = parking->order.id,
        .token = parking->order.token,
        .number = parking->order.number,
        .outcome = outcome,
        .bytes = bytes,
        .text = text,
        .action = parking->order.action,
        .waited_ms = grant_waited_ms(parts->launcher, &parking->order.id) };
    if (outcome != PARK_DONE)
        log_job(LOG_WARNING, parking->order.id.job, "it cannot be %s%s: %s",
            parking->order.action != PARK_SAVE ? "restored" : "parked",
            outcome == PARK_LOST ? " and is lost" : "", text != NULL ? text : "no reason");
    parts->report(parts->arg, &result);
}

static void conclude(struct parking *parking, enum park_outcome outcome, uint64_t bytes, char *text)
{
    if (!parking->is_given_up)
        report(parking, outcome, bytes, text);
    park_notice_write(parking->parker->parts.launcher, &parking->order, outcome);
    parking->step = OVER;
}

/* --- GPUs --- */

/* The memory that the attempt uses on its GPUs according to the driver. */
static uint64_t used_bytes(const struct parking *parking)
{
    const struct gpu_state *gpus = parking->parker->last.gpus.items;
    uint64_t sum = 0;
    for (size_t i = 0; i < parking->parker->last.gpus.count; i++) {
        const struct gpu_process *processes = gpus[i].processes.items;
        for (size_t k = 0; k < gpus[i].processes.count; k++)
            if (processes[k].job == parking->order.id.job &&
                processes[k].attempt == parking->order.id.attempt)
                sum += processes[k].memory_bytes;
    }
    return sum;
}

/* Its user loses access to the GPUs as well. */
static void leave_gpus(const struct parking *parking)
{
    const struct parker_parts *parts = &parking->parker->parts;
    gpu_check_end(parts->check, &parking->order.id, clock_boot_ms());
    gpu_access_drop(parts->access, &parking->order.id);
    gpu_chores_drop(parts->chores, &parking->order.id);
}

/* Assigns the GPUs once they are clean and cleared; in any case if it never left them (`is_kept`). */
static int enter_gpus(const struct parking *parking, bool is_kept, struct error *err)
{
    const struct parker_parts *parts = &parking->parker->parts;
    const struct spool_id *id = &parking->order.id;
    struct launch_spec spec;
    _cleanup_close_ int dirfd = launcher_open_entry(parts->launcher, id);
    if (is_kept)
        gpu_check_keep(parts->check, id);
    int r = is_kept ? 0 : gpu_check_return(parts->check, id, err);
    if (r < 0 || dirfd < 0 || file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0)
        return r;
    if (is_kept)
        gpu_chores_resume(parts->chores, id, spec.uid, &spec.gpus);
    else
        r = gpu_chores_admit(parts->chores, id, spec.uid, &spec.gpus, err);
    if (r == 0)
        r = gpu_access_take(parts->access, id, spec.uid, &spec.gpus, err);
    record_clear(&launch_spec_record, &spec);
    return r;
}

/* --- the helper --- */

static void on_end(void *arg, int status);

static int start_helper(struct parking *parking, bool is_return)
{
    const struct parker_parts *parts = &parking->parker->parts;
    struct park_task task = {
        .library = parts->library,
        .number = parking->order.number,
        .is_return = is_return,
        .gpus = &parking->parker->last.gpus,
        .bytes = used_bytes(parking),
        .bytes_max = parking->order.bytes_max,
        .timeout_ms = is_return ? 0 : parking->order.timeout_ms,
    };
    _cleanup_close_ int dirfd = launcher_open_entry(parts->launcher, &parking->order.id);
    if (dirfd < 0)
        return dirfd;
    int pidfd = -1;
    pid_t pid = child_fork(dirfd, &pidfd);
    if (pid == 0) {
        helper_enter(HELPER_PARK);
        (void)setsid();
        _exit(park_helper_run(&task, CHILD_FD));
    }
    if (pid < 0)
        return (int)pid;
    parking->child = child_watch(parts->base, pidfd, on_end, parking);
    return 0;
}

/* The attempt gets its GPUs for the first time, and its processes that wait for them continue. */
static void grant(struct parking *parking)
{
    struct error err = { 0 };
    const struct parker_parts *parts = &parking->parker->parts;
    int r = grant_make(parts->launcher, &parking->order.id, parking->order.number, &err);
    if (r < 0)
        leave_gpus(parking);
    else if (parts->usage != NULL)
        usage_watch_reload(parts->usage, &parking->order.id);
    enum park_outcome refusal = r == -ENOTRECOVERABLE ? PARK_LOST : PARK_REFUSED;
    conclude(parking, r == 0 ? PARK_DONE : refusal, 0, r == 0 ? NULL : err.message);
}

static void help(struct parking *parking)
{
    if (parking->order.action == PARK_RETURN &&
        grant_is_due(parking->parker->parts.launcher, &parking->order.id)) {
        grant(parking);
        return;
    }
    bool is_return = parking->order.action != PARK_SAVE || parking->step == UNDOING;
    int r = start_helper(parking, is_return);
    if (r == -ENOENT) // the attempt has ended
        parking->step = OVER;
    else if (r < 0)
        conclude(parking, PARK_REFUSED, 0, strerror(-r));
    else if (!is_return && parking->order.timeout_ms > 0)
        arm(parking, parking->order.timeout_ms + LATE_MS);
}

/* Called after a helper for `parking` has ended. */
static void take_entry(struct parking *parking, const struct launch_park *entry)
{
    bool is_undone = parking->step == UNDOING && entry->is_return != 0;
    if (parking->order.action == PARK_RETURN && entry->is_return == 0) {
        parking->step = HELPING; // the save was in progress: now the return begins
        return;
    }
    if (is_undone) {
        conclude(parking, entry->outcome == PARK_LOST ? PARK_LOST : PARK_REFUSED, 0,
            entry->outcome == PARK_LOST ? entry->text : parking->why);
    } else if (entry->is_return == 0 && entry->outcome == PARK_DONE && parking->is_given_up) {
        parking->step = UNDOING; // the driver responded after all
    } else if (entry->is_return == 0 && entry->outcome == PARK_DONE && parking->was_parked) {
        conclude(parking, PARK_DONE, entry->bytes, NULL); // other jobs may be on its GPUs
    } else if (entry->is_return == 0 && entry->outcome == PARK_DONE) {
        leave_gpus(parking);
        parking->step = LEAVING;
    } else {
        conclude(parking, (enum park_outcome)entry->outcome, 0, entry->text);
    }
}

/* The helper has died. If it had begun, processes may be locked: the next helper undoes that. */
static void take_death(struct parking *parking, bool is_begun)
{
    char text[] = "the process that parks jobs has died repeatedly";
    if (++parking->helpers >= HELPERS_MAX)
        conclude(parking, is_begun ? PARK_LOST : PARK_REFUSED, 0, text);
}

static void on_end(void *arg, int status)
{
    struct parking *parking = arg;
    struct launch_park entry = { 0 };
    parking->child = NULL;
    (void)evtimer_del(parking->timer);
    if (WIFEXITED(status) && WEXITSTATUS(status) == PARK_EXIT_BUSY) {
        char text[] = "an earlier request still waits for the driver";
        if (clock_boot_ms() < parking->until_ms || parking->order.action != PARK_SAVE ||
            parking->step == UNDOING)
            arm(parking, BUSY_MS);
        else
            conclude(parking, PARK_REFUSED, 0, text);
    } else if (read_entry(parking, &entry) == 0 && entry.number > parking->order.number) {
        parking->step = OVER; // a later order was carried out meanwhile
    } else if (entry.number == parking->order.number && entry.outcome != 0 &&
               (parking->step != UNDOING || entry.is_return != 0)) {
        take_entry(parking, &entry);
    } else {
        take_death(parking, entry.number == parking->order.number);
    }
    record_clear(&launch_park_record, &entry);
    advance(parking);
}

/* --- steps --- */

static void leave(struct parking *parking)
{
    struct error err = { 0 }, ignored;
    struct launch_park entry = { 0 };
    int r = gpu_check_left(parking->parker->parts.check, &parking->order.id, &err);
    if (r == -EINPROGRESS)
        return;
    if (r == 0) {
        (void)read_entry(parking, &entry);
        conclude(parking, PARK_DONE, entry.bytes, NULL);
        record_clear(&launch_park_record, &entry);
        return;
    }
    (void)enter_gpus(parking, true, &ignored);
    parking->why = xasprintf("the driver has saved its memory, but %s", err.message);
    parking->step = UNDOING;
}

/* The GPUs that the attempt left are recorded for the driver until it has returned. */
static int note_home(int dirfd, struct launch_park *entry)
{
    struct launch_spec spec;
    int r = entry->home.count > 0 ? 0 : file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL);
    if (r < 0 || entry->home.count > 0)
        return r;
    const struct gpu_grant *grants = spec.gpus.items;
    for (size_t i = 0; i < spec.gpus.count; i++)
        strings_add(&entry->home, grants[i].uuid != NULL ? grants[i].uuid : "");
    record_clear(&launch_spec_record, &spec);
    return file_write_record(dirfd, SPOOL_PARK, &launch_park_record, entry, false);
}

/* Moves the attempt to the GPUs of the order, if the order names any. */
static int move_gpus(const struct parking *parking, struct error *err)
{
    const struct parker_parts *parts = &parking->parker->parts;
    const struct spool_id *id = &parking->order.id;
    struct launch_park entry = { 0 };
    if (parking->order.gpus.count == 0)
        return 0;
    _cleanup_close_ int dirfd = launcher_open_entry(parts->launcher, id);
    int r = dirfd < 0 ? dirfd : file_read_record(dirfd, SPOOL_PARK, &launch_park_record, &entry, err);
    if (r == 0)
        r = note_home(dirfd, &entry);
    record_clear(&launch_park_record, &entry);
    if (r < 0)
        return error_set_errno(err, r, "cannot note the GPUs of job %" PRIu64, id->job);
    r = launcher_move_gpus(parts->launcher, id, &parking->order.gpus, err);
    if (r >= 0)
        gpu_check_move(parts->check, id, &parking->order.gpus);
    if (r == 1 && parts->usage != NULL)
        usage_watch_reload(parts->usage, id);
    return r < 0 ? r : 0;
}

/* Written before its helper is started, without an outcome, or because the order is refused: see above. */
static int note_return(const struct parking *parking, uint32_t outcome, const char *why)
{
    struct launch_park entry = { 0 };
    _cleanup_close_ int dirfd = launcher_open_entry(parking->parker->parts.launcher, &parking->order.id);
    int r = dirfd < 0 ? dirfd : file_read_record(dirfd, SPOOL_PARK, &launch_park_record, &entry, NULL);
    if (r < 0)
        return r;
    entry.number = parking->order.number;
    entry.is_return = PARK_RETURN;
    entry.outcome = outcome;
    free(entry.text);
    entry.text = xstrdup(why);
    r = file_write_record(dirfd, SPOOL_PARK, &launch_park_record, &entry, false);
    record_clear(&launch_park_record, &entry);
    return r;
}

static void clear(struct parking *parking)
{
    struct error err = { 0 };
    int r = move_gpus(parking, &err);
    if (r == 0)
        r = enter_gpus(parking, false, &err);
    if (r == -EINPROGRESS)
        return;
    if (r == 0 && (r = note_return(parking, 0, NULL)) < 0)
        (void)error_set_errno(&err, r, "cannot write the spool file %s", SPOOL_PARK);
    if (r == 0) {
        parking->step = HELPING;
        return;
    }
    (void)note_return(parking, PARK_REFUSED, err.message);
    conclude(parking, PARK_REFUSED, 0, err.message);
}

static void check(struct parking *parking)
{
    struct error err = { 0 };
    int r = gpu_check_left(parking->parker->parts.check, &parking->order.id, &err);
    if (r != -EINPROGRESS)
        conclude(parking, r == 0 ? PARK_DONE : PARK_REFUSED, 0, r == 0 ? NULL : err.message);
}

/* Continues as far as possible without waiting; frees what has ended. */
static void advance(struct parking *parking)
{
    enum step before = OVER;
    while (parking->step != before && parking->child == NULL) {
        before = parking->step;
        if (parking->step == LEAVING)
            leave(parking);
        else if (parking->step == CLEARING)
            clear(parking);
        else if (parking->step == CHECKING)
            check(parking);
        else if (parking->step != OVER && !evtimer_pending(parking->timer, NULL))
            help(parking);
    }
    if (parking->step == OVER)
        parking_free(parking);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct parking *parking = arg;
    if (parking->child == NULL) {
        advance(parking);
        return;
    }
    _cleanup_free_ char *text = xasprintf(
        "the driver has not answered for %" PRId64 " s", (parking->order.timeout_ms + LATE_MS) / 1000);
    (void)process_signal(child_pidfd(parking->child), SIGTERM);
    report(parking, PARK_REFUSED, 0, text);
    parking->is_given_up = true;
}

/* True for a rank of a job on several nodes. */
static bool has_peers(const struct parking *parking)
{
    struct launch_spec spec;
    _cleanup_close_ int dirfd = launcher_open_entry(parking->parker->parts.launcher, &parking->order.id);
    if (dirfd < 0 || file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0)
        return false;
    bool has_peers = spec.is_gated;
    record_clear(&launch_spec_record, &spec);
    return has_peers;
}

/* Handles an order to return, or to check, whose number is the one in the spool. */
static enum step resume_return(struct parking *parking, const struct launch_park *entry)
{
    struct error ignored;
    if (entry->is_return == 0) {
        /* The attempt is to run: another rank refused, or an agent that has died abandoned the order. */
        if (entry->outcome == PARK_DONE)
            (void)enter_gpus(parking, true, &ignored);
        return entry->outcome == PARK_LOST ? OVER : HELPING;
    }
    parking->order.action = PARK_RETURN;
    if (entry->outcome == PARK_REFUSED && has_peers(parking))
        return CLEARING; // it is retried
    if (entry->outcome != 0) {
        conclude(parking, (enum park_outcome)entry->outcome, 0, entry->text);
        return OVER;
    }
    (void)enter_gpus(parking, true, &ignored);
    return HELPING;
}

/* The next step of the order, after those that an earlier agent has done. */
static enum step first_step(struct parking *parking)
{
    struct launch_park entry = { 0 };
    const struct message_park *order = &parking->order;
    bool is_known = read_entry(parking, &entry) == 0 && entry.number == order->number;
    enum step step = order->action == PARK_SAVE     ? HELPING
                     : order->action == PARK_RETURN ? CLEARING
                                                    : CHECKING;
    parking->was_parked = !is_known && launch_is_parked(&entry);
    if (entry.number > order->number)
        step = OVER; // a late copy
    else if (is_known && order->action == PARK_SAVE && entry.is_return != 0)
        step = UNDOING;
    else if (is_known && order->action != PARK_SAVE)
        step = resume_return(parking, &entry);
    record_clear(&launch_park_record, &entry);
    return step;
}

/* True if its step has ended: a rank may end before the others. */
static bool has_ended(const struct parking *parking)
{
    _cleanup_close_ int dirfd = launcher_open_entry(parking->parker->parts.launcher, &parking->order.id);
    return dirfd >= 0 && faccessat(dirfd, SPOOL_EXIT, F_OK, 0) == 0;
}

/* True if this order or a later one is being carried out. */
static bool is_known(struct parker *parker, const struct message_park *order)
{
    struct error ignored;
    for (struct parking *other = parker->first; other != NULL; other = other->next) {
        if (!spool_id_equal(&other->order.id, &order->id) || other->order.number < order->number)
            continue;
        if (other->order.number > order->number || other->order.action != PARK_SAVE ||
            order->action != PARK_RETURN || other->is_given_up || other->step == OVER)
            return true;
        if (other->step == LEAVING) {
            (void)enter_gpus(other, true, &ignored);
            other->step = HELPING;
        }
        other->order.action = PARK_RETURN;
        if (other->child != NULL)
            (void)process_signal(child_pidfd(other->child), SIGTERM);
        advance(other);
        return true;
    }
    return false;
}

/*
 * Earlier orders about the attempt that wait for its GPUs have nothing left to do. One whose helper is
 * running finds the number of the later order when that has begun. True if the attempt was leaving its GPUs.
 */
static bool drop_earlier(struct parker *parker, const struct message_park *order)
{
    bool was_leaving = false;
    struct parking *after = NULL;
    for (struct parking *other = parker->first; other != NULL; other = after) {
        after = other->next;
        bool is_waiting = other->step == LEAVING || other->step == CLEARING || other->step == CHECKING;
        if (!is_waiting || !spool_id_equal(&other->order.id, &order->id) ||
            other->order.number >= order->number)
            continue;
        was_leaving = was_leaving || other->step == LEAVING;
        parking_free(other);
    }
    return was_leaving;
}

void parker_recall(const struct parker *parker, const struct spool_id *id, struct known_attempt *known)
{
    for (const struct parking *parking = parker->first; parking != NULL; parking = parking->next) {
        if (!spool_id_equal(&parking->order.id, id))
            continue;
        if (parking->order.number > known->park_number)
            known->park_number = parking->order.number;
        if (parking->order.action != PARK_CHECK)
            known->park_seen = PARK_SEEN_CHANGING;
    }
}

void parker_order(struct parker *parker, const struct message_park *order)
{
    if (is_known(parker, order))
        return;
    bool was_leaving = drop_earlier(parker, order);
    struct parking *parking = xcalloc(1, sizeof(*parking));
    parking->parker = parker;
    parking->order = *order;
    parking->order.gpus = (struct record_list){ 0 };
    gpu_grants_copy(&parking->order.gpus, &order->gpus);
    parking->timer = evtimer_new(parker->parts.base, on_timer, parking);
    parking->until_ms = clock_boot_ms() + order->timeout_ms;
    parking->next = parker->first;
    parker->first = parking;
    if (has_ended(parking)) {
        parking->order.action = order->action == PARK_CHECK ? PARK_RETURN : order->action;
        conclude(parking, PARK_DONE, 0, NULL);
    } else {
        parking->step = first_step(parking);
        parking->was_parked = parking->was_parked && !was_leaving;
    }
    if (parking->step == UNDOING)
        parking->why = xstrdup("something was still on its GPUs");
    advance(parking);
}

void parker_note_gpus(struct parker *parker, const struct record_list *gpus)
{
    struct message_gpus now = { .gpus = *gpus };
    record_clear(&message_gpus_record, &parker->last);
    record_copy(&message_gpus_record, &parker->last, &now);
    struct parking *after = NULL;
    for (struct parking *parking = parker->first; parking != NULL; parking = after) {
        after = parking->next;
        if (parking->step == LEAVING || parking->step == CLEARING || parking->step == CHECKING)
            advance(parking);
    }
}

struct parker *parker_new(const struct parker_parts *parts)
{
    struct parker *parker = xcalloc(1, sizeof(*parker));
    parker->parts = *parts;
    return parker;
}

void parker_free(struct parker *parker)
{
    if (parker == NULL)
        return;
    while (parker->first != NULL)
        parking_free(parker->first);
    record_clear(&message_gpus_record, &parker->last);
    free(parker);
}
