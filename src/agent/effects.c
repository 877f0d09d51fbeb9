/* SPDX-License-Identifier: MIT */
/*
 * Each effect is one short function over the launcher, the spool and the event loop. State that the core
 * cannot observe is kept here: the watched shepherds, whose end makes the core observe their attempt again.
 */
#include "agent/effects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attach/terminal_visit.h"
#include "agent/host/persist.h"
#include "agent/host/run_reserve.h"
#include "agent/host/watches.h"
#include "agent/launch/adopted.h"
#include "agent/launch/adopted_kill.h"
#include "agent/spool_load.h"
#include "agent/spool_observe.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "job/start_failure.h"
#include "job/state.h"

struct effects {
    struct effects_parts parts;
    struct agent_core *core;
    struct agent_link *link;
    struct event *timer;
    struct watches *watches; // the shepherds' watches; pid 0: started by an earlier agent
    struct adopted_kills *kills;
    struct run_reserve *reserve;
};

static void on_shepherd_end(void *arg, const struct spool_id *id, pid_t pid)
{
    struct effects *effects = arg;
    launcher_note_end(effects->parts.launcher, pid);
    agent_core_reconcile(effects->core, clock_boot_ms(), id);
}

static void effect_send(void *arg, const struct record_type *type, const void *message)
{
    struct effects *effects = arg;
    if (effects->link != NULL)
        agent_link_send(effects->link, type, message);
}

static void effect_observe(
    void *arg, const struct spool_id *id, bool is_reported, struct attempt_observation *observed)
{
    const struct effects *effects = arg;
    observed->is_watched = watches_has(effects->watches, id);
    observed->is_alive = observed->is_watched;
    spool_observe(&effects->parts, id, is_reported, observed);
}

static void effect_recall(void *arg, const struct spool_id *id, struct known_attempt *known)
{
    const struct effects *effects = arg;
    spool_recall(&effects->parts, id, known);
    parker_recall(effects->parts.parker, id, known);
}

static int effect_stage(void *arg, const struct message_launch *launch, struct error *err)
{
    struct effects *effects = arg;
    int r = launcher_stage(effects->parts.launcher, launch, err);
    if (r == LAUNCHER_STAGED)
        gpu_check_take(effects->parts.check, &launch->id, &launch->gpus);
    if (r == LAUNCHER_STAGED && launch->is_early != 0)
        gpu_check_leave(effects->parts.check, &launch->id);
    return r < 0 ? r : 0;
}

static int effect_prepare(void *arg, const struct message_launch *launch, struct error *err)
{
    struct effects *effects = arg;
    return launcher_prepare(effects->parts.launcher, launch, err);
}

static int effect_take(void *arg, const struct message_launch *launch, struct error *err)
{
    struct effects *effects = arg;
    int r = launcher_take(effects->parts.launcher, launch, err);
    if (r == 0)
        gpu_check_take(effects->parts.check, &launch->id, &launch->gpus);
    return r;
}

/* 0 when its GPUs are clean, and the work to be done before it gets them is done; else as `start`. */
static int admit(struct effects *effects, const struct spool_id *id, struct error *err)
{
    struct launch_spec spec;
    int r = gpu_check_start(effects->parts.check, id, err);
    if (r < 0 || effects->parts.chores == NULL)
        return r;
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    if (dirfd < 0 || file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0)
        return 0; // the start reports the reason
    r = gpu_chores_admit(effects->parts.chores, id, spec.uid, &spec.gpus, err);
    record_clear(&launch_spec_record, &spec);
    return r;
}

/* If the machine's GPUs are locked, its user can open those of the attempt from now on. */
static int open_gpus(struct effects *effects, const struct spool_id *id, int dirfd, struct error *err)
{
    struct launch_spec spec;
    if (effects->parts.access == NULL || dirfd < 0 ||
        file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL) < 0)
        return 0; // the start reports the reason
    int r = gpu_access_take(effects->parts.access, id, spec.uid, &spec.gpus, err);
    record_clear(&launch_spec_record, &spec);
    return r;
}

static int admit_and_open(struct effects *effects, const struct spool_id *id, int dirfd, struct error *err)
{
    int r = admit(effects, id, err);
    if (r < 0)
        return error_mark(err, START_GPU, r);
    return error_mark(err, START_DEVICE, open_gpus(effects, id, dirfd, err));
}

static int effect_admit(void *arg, const struct spool_id *id, struct error *err)
{
    struct effects *effects = arg;
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    return admit_and_open(effects, id, dirfd, err);
}

static int effect_start(void *arg, const struct spool_id *id, enum shepherd_task task, struct error *err)
{
    struct effects *effects = arg;
    struct launcher_process process;
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    if (dirfd >= 0 && adopted_is(dirfd)) {
        inspector_forget(effects->parts.looks, id->job); // from now on, the spool describes it
        return task == SHEPHERD_ADOPTS ? adopted_end(dirfd, END_RELEASED, err) : adopted_begin(dirfd, err);
    }
    bool has_gpus = task == SHEPHERD_RUNS && !gpu_check_is_away(effects->parts.check, id);
    int r = has_gpus ? admit_and_open(effects, id, dirfd, err) : 0;
    if (r < 0)
        return r;
    r = task == SHEPHERD_ADOPTS ? launcher_adopt(effects->parts.launcher, id, &process, err)
                                : launcher_start(effects->parts.launcher, id, &process, err);
    if (r < 0)
        return r;
    watches_add(effects->watches, id, process.pid, process.end_fd);
    return 0;
}

/* `started` names only the first shepherd. One that adopted the attempt is found by the core's own second
 * observation. An adoption started by this agent is watched through its own process. */
static bool effect_watch(void *arg, const struct spool_id *id, const struct attempt_observation *observed)
{
    struct effects *effects = arg;
    if (observed->started.id.job == 0)
        return false;
    int pidfd = process_open((pid_t)observed->started.shepherd_pid, observed->started.shepherd_start);
    if (pidfd < 0)
        return false;
    watches_add(effects->watches, id, 0, pidfd);
    return true;
}

/* Creates an entry for an attempt that was never staged. Its spec only names the attempt, and is written
 * after the verdict, so that no shepherd could ever start on it. */
static int make_entry(struct effects *effects, const struct spool_id *id, uint64_t token)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    if (mkdirat(launcher_spool_fd(effects->parts.launcher), name, 0700) < 0)
        return -errno;
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    if (dirfd < 0)
        return dirfd;
    int r = spool_decide(dirfd, VERDICT_NOGO);
    if (r < 0)
        return r;
    struct launch_spec spec = { .id = *id, .token = token };
    (void)file_write_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, false);
    return r;
}

static int settle_nogo(struct effects *effects, const struct spool_id *id, uint64_t token)
{
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    int r = dirfd >= 0 ? spool_decide(dirfd, VERDICT_NOGO) : dirfd;
    return r == -ENOENT ? make_entry(effects, id, token) : r;
}

static int effect_settle_nogo(void *arg, const struct spool_id *id, uint64_t token, struct error *err)
{
    struct effects *effects = arg;
    int r = settle_nogo(effects, id, token);
    if (run_reserve_use(effects->reserve, r))
        r = settle_nogo(effects, id, token);
    return r < 0 ? error_set_errno(err, r, "cannot settle the verdict") : r;
}

static int effect_command(void *arg, const struct spool_id *id, uint32_t signal, int64_t grace_ms)
{
    struct effects *effects = arg;
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    if (dirfd >= 0 && adopted_is(dirfd)) {
        int r = (signal & STOP_ADOPTED) != 0
                    ? adopted_kills_start(effects->kills, dirfd, signal & ~STOP_ADOPTED, grace_ms)
                    : -EPERM;
        return r == -EPERM ? adopted_end(dirfd, END_CANCELLED, NULL) : r; // release it
    }
    return launcher_command(effects->parts.launcher, id, signal, grace_ms);
}

static int effect_release(void *arg, const struct spool_id *id, uint32_t port)
{
    struct effects *effects = arg;
    return launcher_release(effects->parts.launcher, id, port);
}

static void effect_release_gpus(void *arg, const struct strings *uuids)
{
    const struct effects *effects = arg;
    effects->parts.release_gpus(effects->parts.arg, uuids);
}

static int effect_update(
    void *arg, const struct spool_id *id, const struct spool_terms *terms, struct error *err)
{
    struct effects *effects = arg;
    return launcher_update(effects->parts.launcher, id, terms, err);
}

static void effect_kill(void *arg, const struct spool_id *id)
{
    struct effects *effects = arg;
    int r = effects->parts.confine->kill(effects->parts.cells, id);
    if (r < 0)
        log_job(LOG_ERROR, id->job, "cannot end processes it left running: %s", strerror(-r));
}

static int effect_restore(void *arg, const struct spool_id *id)
{
    struct effects *effects = arg;
    struct error err = { 0 };
    int r = launcher_restore_one(effects->parts.launcher, id, &err);
    if (r < 0 && r != -ENOENT)
        log_job(LOG_ERROR, id->job, "%s", err.message);
    return r;
}

static int effect_remove(void *arg, const struct spool_id *id)
{
    struct effects *effects = arg;
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    if (dirfd >= 0 && adopted_is(dirfd))
        watches_drop(effects->watches, id); // the process may still be alive
    int r = launcher_discard(effects->parts.launcher, id);
    if (r == -EBUSY)
        effect_kill(arg, id); // an init that its user has stopped and whose shepherd has died
    if (r < 0 && r != -EBUSY)
        log_job(LOG_ERROR, id->job, "cannot remove its spool entry: %s", strerror(-r));
    if (r == 0) {
        gpu_check_drop(effects->parts.check, id);
        gpu_access_drop(effects->parts.access, id);
        gpu_chores_drop(effects->parts.chores, id);
        run_reserve_fill(effects->reserve);
    }
    return r;
}

static int effect_save_epoch(void *arg, uint64_t epoch, struct error *err)
{
    struct effects *effects = arg;
    return persist_save_epoch(effects->parts.state_fd, effects->parts.epoch_file, epoch, err);
}

static void effect_save_seen(void *arg, const struct persist_seen *seen)
{
    struct effects *effects = arg;
    persist_save_seen(launcher_spool_fd(effects->parts.launcher), effects->parts.epoch_file, seen);
}

static void effect_open_log(void *arg, const struct message_open_log *request)
{
    struct effects *effects = arg;
    log_streams_open(effects->parts.streams, request);
}

static void effect_inspect(void *arg, const struct message_inspect *request)
{
    struct effects *effects = arg;
    inspector_take(effects->parts.looks, request);
}

static void effect_open_terminal(void *arg, const struct message_open_terminal *request)
{
    struct effects *effects = arg;
    terminal_visit_open(launcher_spool_fd(effects->parts.launcher), effects->parts.link_path, request);
}

static void effect_open_step(void *arg, const struct message_open_step *request)
{
    struct effects *effects = arg;
    exec_steps_open(effects->parts.exec_steps, request);
}

static void effect_rejoin_step(void *arg, const struct message_rejoin_step *request)
{
    struct effects *effects = arg;
    exec_steps_rejoin(effects->parts.exec_steps, request);
}

static void effect_open_port(void *arg, const struct message_open_port *request)
{
    struct effects *effects = arg;
    port_streams_open(effects->parts.ports, request);
}

static void effect_notify(void *arg, const struct message_notify *request)
{
    struct effects *effects = arg;
    notifiers_notify(effects->parts.notifiers, request);
}

static void effect_park(void *arg, const struct message_park *order)
{
    struct effects *effects = arg;
    parker_order(effects->parts.parker, order);
}

static int effect_renew(void *arg, const struct spool_id *id, int64_t until_ms)
{
    struct effects *effects = arg;
    _cleanup_close_ int dirfd = launcher_open_entry(effects->parts.launcher, id);
    if (dirfd < 0)
        return dirfd;
    int r = spool_renew(dirfd, until_ms);
    if (run_reserve_use(effects->reserve, r))
        r = spool_renew(dirfd, until_ms);
    return r;
}

static void effect_hang_up(void *arg)
{
    struct effects *effects = arg;
    if (effects->link != NULL)
        agent_link_end(effects->link);
}

static void effect_arm(void *arg, int64_t boot_ms)
{
    struct effects *effects = arg;
    int64_t left_ms = boot_ms - clock_boot_ms();
    struct timeval time = { left_ms > 0 ? left_ms / 1000 : 0, left_ms > 0 ? left_ms % 1000 * 1000 : 0 };
    (void)evtimer_add(effects->timer, &time);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct effects *effects = arg;
    agent_core_timer(effects->core, clock_boot_ms());
}

struct effects *effects_new(const struct effects_parts *parts, uint64_t epoch)
{
    struct effects *effects = xcalloc(1, sizeof(*effects));
    struct agent_effects table = {
        .arg = effects,
        .send = effect_send,
        .observe = effect_observe,
        .recall = effect_recall,
        .stage = effect_stage,
        .start = effect_start,
        .watch = effect_watch,
        .settle_nogo = effect_settle_nogo,
        .command = effect_command,
        .release = effect_release,
        .release_gpus = effect_release_gpus,
        .kill = effect_kill,
        .restore = effect_restore,
        .update = effect_update,
        .remove = effect_remove,
        .save_epoch = effect_save_epoch,
        .save_seen = effect_save_seen,
        .prepare = effect_prepare,
        .take = effect_take,
        .admit = effect_admit,
        .open_log = effect_open_log,
        .open_terminal = effect_open_terminal,
        .open_step = effect_open_step,
        .rejoin_step = effect_rejoin_step,
        .open_port = effect_open_port,
        .arm = effect_arm,
        .inspect = effect_inspect,
        .notify = effect_notify,
        .park = effect_park,
        .renew = effect_renew,
        .hang_up = effect_hang_up,
    };
    effects->parts = *parts;
    effects->watches = watches_new(parts->base, on_shepherd_end, effects);
    effects->kills = adopted_kills_new(parts->base);
    effects->reserve = run_reserve_open(launcher_spool_fd(parts->launcher));
    effects->timer = evtimer_new(parts->base, on_timer, effects);
    effects->core = agent_core_new(&table, epoch);
    struct persist_seen seen;
    persist_load_seen(launcher_spool_fd(parts->launcher), parts->epoch_file, &seen);
    agent_core_note_seen(effects->core, &seen);
    return effects;
}

void effects_free(struct effects *effects)
{
    if (effects == NULL)
        return;
    watches_free(effects->watches);
    agent_core_free(effects->core);
    adopted_kills_free(effects->kills);
    run_reserve_close(effects->reserve);
    event_free(effects->timer);
    free(effects);
}

struct agent_core *effects_core(struct effects *effects)
{
    return effects->core;
}

static void reconcile_again(void *arg, const struct spool_id *id)
{
    struct effects *effects = arg;
    agent_core_reconcile(effects->core, clock_boot_ms(), id);
}

void effects_gpus_checked(struct effects *effects)
{
    gpu_check_each_waiting(effects->parts.check, reconcile_again, effects);
}

void effects_set_link(struct effects *effects, struct agent_link *link)
{
    effects->link = link;
}

int effects_load(struct effects *effects, struct error *err)
{
    return spool_load(&effects->parts, effects->core, err);
}
