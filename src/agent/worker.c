/* SPDX-License-Identifier: MIT */
/* The agent's root struct and its life:
 *
 *      WAITING for the lock ──> opens spool, cgroups, state ──> finds the GPUs ──HELLO──> SERVING
 *
 * The spool is managed as soon as the lock is held: the work of a shepherd that died is finished even while
 * the GPU driver is starting. When the link closes the agent exits at once; jobs and shepherds continue. On a
 * joined machine (--uplink-fd) there is a link only while the controller is reachable. Each new link arrives
 * over the control socket, and HELLO is sent on it. This worker exits when that socket closes. */
#include "agent/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attach/job_socket.h"
#include "agent/confine/name.h"
#include "agent/confine/node_features.h"
#include "agent/early_probe.h"
#include "agent/effects.h"
#include "agent/gpu/access.h"
#include "agent/gpu/check.h"
#include "agent/gpu/chores.h"
#include "agent/gpu/devices.h"
#include "agent/gpu/helper.h"
#include "agent/gpu/place.h"
#include "agent/gpu/usage_watch.h"
#include "agent/guard.h"
#include "agent/host/cpus.h"
#include "agent/host/node_addresses.h"
#include "agent/host/persist.h"
#include "agent/host/user_resolver.h"
#include "agent/launch/spool_watch.h"
#include "agent/notify/notifier.h"
#include "agent/shares.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/node/private_tmp.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/version.h"

#define LOCK_FILE       "agent.lock"
#define LINK_SOCKET     "../link.sock" // as seen from the spool
#define GPU_BACKLOG_MAX (64U << 10)    // samples are dropped while the controller is this far behind
#define GPU_REPEATS_MAX 60U            // unchanged samples that are forwarded nevertheless

struct worker {
    const struct agent_options *options;
    struct event_base *base;
    int run_fd, state_fd;
    struct event *link_watch; // while waiting for the lock: detects that the link closes
    struct guard *guard;
    const struct confine *confine;
    struct confine_state *cells;
    struct error confine_err;     // why no better kind is used
    struct error devices_err;     // why jobs may open every device
    struct error private_tmp_err; // why no job can have its own /tmp
    struct gpu_devices *devices;
    struct shares shares; // of GPUs
    struct launcher *launcher;
    struct job_users users;
    struct user_resolver *resolver;
    struct log_streams *streams;
    struct exec_steps *exec_steps;
    struct port_streams *ports;
    struct job_socket *jobs; // NULL: mgpud runs on this machine
    struct effects *effects;
    struct spool_watch *hints;
    struct agent_link *link; // NULL: no link to the controller
    struct event *control;   // of the uplink
    int early_link;          // arrived before the lock was acquired; -1: none
    struct gpu_roster *roster;
    struct gpu_helper *gpus;
    struct usage_watch *watch;
    struct gpu_check *check;
    struct gpu_access *access;
    struct gpu_chores *chores;
    struct inspector *looks;
    struct notifiers *notifiers;
    struct parker *parker;
    char boot_id[BOOT_ID_SIZE];
    char identity[PERSIST_IDENTITY_SIZE]; // boot id and spool
    bool has_sent_hello;
    struct buffer last_gpus; // the last GPUS message, to send only changes
    uint32_t gpu_repeats;    // consecutive samples equal to it
    char *sent_text;         // last text sent about features that change; NULL: none since HELLO
    int status;
};

static void leave(struct worker *worker, int status)
{
    worker->status = status;
    (void)event_base_loopbreak(worker->base);
}

static int on_link_message(void *arg, uint16_t id, const void *message, struct error *err)
{
    struct worker *worker = arg;
    int r = agent_core_message(effects_core(worker->effects), clock_boot_ms(), id, message, err);
    if (r == 0 && id == MESSAGE_WELCOME && worker->options->uplink_fd >= 0)
        log_info("registered with the controller as node %s", worker->options->node);
    if (r == 0 && worker->options->uplink_fd >= 0)
        node_addresses_message(worker->options->state_dir, id, message);
    return r;
}

static void on_link_closed(void *arg, const struct error *err)
{
    struct worker *worker = arg;
    if (err->code != 0)
        log_line(err->code == -EAGAIN ? LOG_WARNING : LOG_ERROR, "%s%s%s", err->message,
            err->hint[0] != '\0' ? " - " : "", err->hint);
    else
        log_info("the controller has closed the connection; jobs continue");
    agent_core_link_down(effects_core(worker->effects));
    effects_set_link(worker->effects, NULL);
    if (worker->control != NULL) {
        agent_link_free(take_ptr(worker->link));
        return;
    }
    leave(worker, err->code != 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void on_hint(void *arg, const struct spool_id *id, bool is_start)
{
    struct worker *worker = arg;
    exec_steps_reconcile(worker->exec_steps, id);
    if (id->step == 0)
        agent_core_hint(effects_core(worker->effects), clock_boot_ms(), id, is_start);
}

static void on_process(void *arg, const struct message_process_info *process)
{
    struct worker *worker = arg;
    agent_core_process(effects_core(worker->effects), process);
}

static void send_hello(struct worker *worker, const struct gpu_report *report)
{
    _cleanup_free_ char *version = xstrdup(MGPU_VERSION);
    struct feature_facts facts = {
        .is_root = geteuid() == 0,
        .confine = worker->confine->name,
        .confine_err = &worker->confine_err,
        .devices_err = &worker->devices_err,
        .private_tmp_err = &worker->private_tmp_err,
        .early_err = early_probe(),
        .is_root_job_allowed = worker->options->is_root_job_allowed,
        .log_dir = worker->options->log_dir,
        .state_dir = worker->options->state_dir,
        .sendmail = worker->options->sendmail,
        .shepherd = worker->options->shepherd,
        .cuda_library = worker->options->cuda_library,
        .gpus = report,
        .limits = worker->confine->limits(worker->cells),
        .pids_max = worker->options->pids_max,
        .shares = &worker->shares.ways,
    };
    struct message_hello hello = {
        .protocol = LINK_PROTOCOL,
        .node = worker->options->node,
        .boot_id = worker->identity,
        .version = version,
        .cpus = cpus_count(),
        .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
        .gpu_backend = report->backend,
        .gpus = report->gpus,
        .shares = shares_bits(&worker->shares),
        .parks_ranks = 1,
        .takes_back = 1,
        .driver = report->driver,
    };
    gpu_place_nics(worker->options->sysfs_root, report->gpus.items, report->gpus.count, &hello.nics);
    node_features_list(&facts, &hello.features);
    agent_core_link_up(effects_core(worker->effects), clock_boot_ms(), &hello);
    node_features_log(worker->options->node, &hello.features);
    node_features_clear(&hello.features);
    gpu_place_clear_nics(&hello.nics);
    free(take_ptr(worker->sent_text));
    usage_watch_set_new(worker->watch, true);
    log_node(LOG_INFO, worker->options->node, "%s", report->text);
}

/* Some decisions of the controller require several equal samples, so unchanged ones are forwarded for a
 * while. False after that, and while the controller lags behind. */
static bool pass_on(struct worker *worker, const struct message_gpus *gpus)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&message_gpus_record, gpus, &bytes);
    bool is_same = bytes.length == worker->last_gpus.length &&
                   memcmp(bytes.bytes, worker->last_gpus.bytes, bytes.length) == 0;
    worker->gpu_repeats = is_same ? worker->gpu_repeats + 1 : 0;
    if (worker->link == NULL || worker->gpu_repeats > GPU_REPEATS_MAX ||
        agent_link_backlog(worker->link) > GPU_BACKLOG_MAX)
        return false;
    agent_core_gpus(effects_core(worker->effects), gpus);
    usage_watch_set_new(worker->watch, false);
    buffer_clear(&worker->last_gpus);
    worker->last_gpus = bytes;
    bytes = (struct buffer){ 0 };
    return true;
}

/* A sample, once a second. Features of the node are sent when their text has changed. */
static void take_sample(struct worker *worker, const struct gpu_report *report, struct message_gpus *gpus)
{
    const struct feature_facts facts = { .gpus = report, .state_dir = worker->options->state_dir };
    struct record_list features;
    usage_watch_usages(worker->watch, &gpus->usages);
    node_features_list_live(&facts, &features);
    _cleanup_free_ char *text = node_features_text(&features, report->driver);
    bool is_new = !text_equal(text, worker->sent_text);
    gpus->gpu_backend = is_new ? report->backend : NULL;
    gpus->features = is_new ? features : (struct record_list){ 0 };
    if (pass_on(worker, gpus) && is_new) {
        free(worker->sent_text);
        worker->sent_text = take_ptr(text);
    }
    node_features_clear(&features);
    usage_watch_clear(&gpus->usages);
}

static uint64_t ask_gpus(void *arg, const struct record_list *grants)
{
    struct worker *worker = arg;
    return worker->gpus != NULL ? gpu_helper_ask(worker->gpus, grants)
                                : 0; // at the start, the first report is the answer
}

static void release_gpus(void *arg, const struct strings *uuids)
{
    struct worker *worker = arg;
    if (worker->gpus != NULL)
        gpu_helper_release(worker->gpus, uuids);
}

/* Facts that the controller must have before the next job starts on these GPUs are sent before anything else
 * happens. */
static void on_gpu_report(void *arg, const struct gpu_report *report)
{
    struct worker *worker = arg;
    struct message_gpus gpus = { .gpus = report->gpus, .driver = report->driver };
    gpu_devices_update(worker->devices, &report->gpus);
    if (report->is_sample)
        usage_watch_add(worker->watch, &gpus.gpus, clock_boot_ms(), clock_wall_ms());
    else
        usage_watch_own(worker->watch, &gpus.gpus);
    bool is_news = gpu_check_report(worker->check, &gpus.gpus, clock_boot_ms());
    parker_note_gpus(worker->parker, &gpus.gpus);
    if (report->is_sample)
        gpu_access_refresh(worker->access);
    shares_report(&worker->shares, &gpus.gpus);
    gpu_chores_report(worker->chores, &gpus.gpus, clock_wall_ms());
    gpu_report_forget_answers(&gpus.gpus);
    if (worker->link != NULL && !worker->has_sent_hello) {
        worker->has_sent_hello = true;
        send_hello(worker, report);
        return;
    }
    if (worker->has_sent_hello && (report->is_sample || is_news))
        take_sample(worker, report, &gpus);
    effects_gpus_checked(worker->effects);
}

/* The best kind of confinement that works here; the last one in the list always does. */
static int open_cells(struct worker *worker, struct error *err)
{
    int r = confine_name_choose(worker->options->run_dir, worker->options->state_dir, err);
    if (r < 0)
        return r;
    for (size_t i = 0; confine_kinds[i] != NULL; i++) {
        struct error why = { 0 };
        worker->confine = confine_kinds[i];
        if (worker->confine->open(worker->options->run_dir, worker->options->cgroup, &worker->cells, &why) ==
            0)
            return 0;
        if (worker->confine_err.code == 0)
            worker->confine_err = why;
    }
    *err = worker->confine_err;
    return err->code;
}

/* The owner of each GPU is known from the first report on, before any job is launched. */
static void open_devices(struct worker *worker)
{
    const struct gpu_devices_places places = { .device_dir = worker->options->device_dir,
        .has_simulated = worker->options->device_dir != NULL,
        .has_imex = worker->options->is_imex_on };
    worker->devices = gpu_devices_new(&places);
    if (worker->confine->can_guard(worker->cells, &worker->devices_err) < 0)
        log_info("jobs are not confined to their GPUs: %s", worker->devices_err.message);
}

static int open_launcher(struct worker *worker, struct error *err)
{
    const struct agent_options *options = worker->options;
    struct launcher_options launcher = {
        .run_dir = options->run_dir,
        .state_dir = options->state_dir,
        .log_dir = options->log_dir,
        .shepherd = options->shepherd,
        .users = worker->users,
        .has_joined = options->uplink_fd >= 0,
        .has_no_new_privs = options->has_no_new_privs,
        .pids_max = options->pids_max,
        .limits = options->job_limits,
        .devices = worker->devices,
        .shares = &worker->shares.ways,
        .is_guarding = worker->devices_err.code == 0,
        .private_tmp_err = &worker->private_tmp_err,
    };
    (void)private_tmp_probe(&worker->private_tmp_err);
    int r = launcher_open(&launcher, worker->confine, worker->cells, &worker->launcher, err);
    if (r < 0)
        return r;
    if (fchdir(launcher_spool_fd(worker->launcher)) < 0)
        return error_set_errno(err, -errno, "cannot enter the spool");
    r = persist_enter_boot(launcher_spool_fd(worker->launcher), worker->boot_id, worker->identity, err);
    return r < 0 ? r : launcher_restore(worker->launcher, err);
}

static void on_notified(void *arg, const struct message_notified *outcome)
{
    struct worker *worker = arg;
    agent_core_notified(effects_core(worker->effects), outcome);
}

static void reconcile_again(void *arg, const struct spool_id *id)
{
    struct worker *worker = arg;
    agent_core_reconcile(effects_core(worker->effects), clock_boot_ms(), id);
}

static void open_notifiers(struct worker *worker)
{
    const struct notifiers_options options = {
        .sendmail = worker->options->sendmail,
        .users = worker->users,
        .devices = worker->devices_err.code == 0 ? worker->devices : NULL,
    };
    worker->notifiers =
        notifiers_new(worker->base, worker->confine, worker->cells, &options, on_notified, worker);
}

static void on_parked(void *arg, const struct message_park_result *result)
{
    struct worker *worker = arg;
    agent_core_parked(effects_core(worker->effects), result);
}

static void open_parker(struct worker *worker)
{
    const struct parker_parts parts = {
        .base = worker->base,
        .launcher = worker->launcher,
        .check = worker->check,
        .access = worker->access,
        .chores = worker->chores,
        .usage = worker->watch,
        .library = worker->options->cuda_library,
        .report = on_parked,
        .arg = worker,
    };
    worker->parker = parker_new(&parts);
}

static int open_effects(struct worker *worker, struct error *err)
{
    uint64_t epoch;
    const char *epoch_file = worker->options->uplink_fd >= 0 ? PERSIST_EPOCH_CLUSTER : PERSIST_EPOCH_HERE;
    int r = persist_load_epoch(worker->state_fd, epoch_file, &epoch, err);
    if (r < 0)
        return r;
    worker->resolver =
        user_resolver_new(worker->base, &worker->users, USER_ANSWER_MS, reconcile_again, worker);
    launcher_set_resolver(worker->launcher, worker->resolver);
    shares_open_mps(&worker->shares, worker->base, worker->options, reconcile_again, worker);
    launcher_set_mps(worker->launcher, worker->shares.mps);
    worker->watch = usage_watch_new(launcher_spool_fd(worker->launcher), "/proc");
    worker->check = gpu_check_new(ask_gpus, worker);
    worker->access = gpu_access_new(worker->options->state_dir, worker->options->device_dir, worker->devices);
    worker->chores = gpu_chores_new(
        worker->base, worker->options, worker->check, worker->state_fd, reconcile_again, worker);
    worker->looks = inspector_new(worker->base, &worker->users, worker->watch, on_process, worker);
    worker->streams = log_streams_new(worker->base, LINK_SOCKET, &worker->users);
    worker->exec_steps = exec_steps_new(worker->base, worker->launcher, LINK_SOCKET);
    worker->ports = port_streams_new(worker->base, worker->launcher, LINK_SOCKET, &worker->users);
    if (worker->options->uplink_fd >= 0)
        worker->jobs = job_socket_new(
            worker->base, worker->options->run_dir, worker->watch, LINK_SOCKET, &worker->users);
    open_notifiers(worker);
    open_parker(worker);
    struct effects_parts parts = {
        .base = worker->base,
        .launcher = worker->launcher,
        .confine = worker->confine,
        .cells = worker->cells,
        .streams = worker->streams,
        .exec_steps = worker->exec_steps,
        .ports = worker->ports,
        .link_path = LINK_SOCKET,
        .watch = worker->watch,
        .check = worker->check,
        .access = worker->access,
        .chores = worker->chores,
        .looks = worker->looks,
        .notifiers = worker->notifiers,
        .parker = worker->parker,
        .mps = worker->shares.mps,
        .release_gpus = release_gpus,
        .arg = worker,
        .state_fd = worker->state_fd,
        .epoch_file = epoch_file,
    };
    worker->effects = effects_new(&parts, epoch);
    r = spool_watch_open(worker->base, on_hint, worker, &worker->hints, err);
    return r < 0 ? r : effects_load(worker->effects, err);
}

/* The last report of the GPUs becomes part of HELLO, or the first report does if there was none. */
static void take_link(struct worker *worker, int fd)
{
    if (worker->link != NULL)
        agent_core_link_down(effects_core(worker->effects));
    agent_link_free(worker->link);
    worker->link = agent_link_new(worker->base, fd, on_link_message, on_link_closed, worker);
    worker->has_sent_hello = false;
    worker->gpu_repeats = 0;
    buffer_clear(&worker->last_gpus);
    effects_set_link(worker->effects, worker->link);
    if (worker->gpus != NULL)
        gpu_helper_repeat(worker->gpus);
}

static void on_control(evutil_socket_t fd, short what, void *arg)
{
    struct worker *worker = arg;
    char word;
    int link = -1;
    int r = descriptor_receive(fd, &word, sizeof(word), &link);
    if (r == 0 || (r < 0 && r != -EAGAIN)) {
        log_info("the uplink has exited; jobs continue");
        leave(worker, EXIT_SUCCESS);
    } else if (r > 0 && link >= 0 && worker->effects != NULL) {
        take_link(worker, link);
    } else if (r > 0) {
        closep(&worker->early_link);
        worker->early_link = link;
    }
}

/* The lock has been acquired. */
static int begin(struct worker *worker, struct error *err)
{
    if (worker->link_watch != NULL)
        (void)event_del(worker->link_watch);
    int r = process_boot_id(worker->boot_id);
    if (r < 0)
        return error_set_errno(err, r, "cannot read the boot id");
    worker->state_fd = persist_open(worker->options->state_dir, err);
    if (worker->state_fd < 0)
        return worker->state_fd;
    r = open_cells(worker, err);
    if (r < 0)
        return r;
    open_devices(worker);
    shares_find(&worker->shares, worker->confine->limits(worker->cells));
    r = open_launcher(worker, err);
    if (r < 0)
        return r;
    r = open_effects(worker, err);
    if (r < 0)
        return r;
    int link = worker->control != NULL ? take_fd(&worker->early_link) : worker->options->link_fd;
    if (link >= 0)
        take_link(worker, link);
    worker->roster = gpu_roster_new(worker->run_fd, worker->boot_id);
    launcher_set_gpus(worker->launcher, gpu_roster_gpus(worker->roster));
    worker->gpus = gpu_helper_new(
        worker->base, &worker->options->gpus, &gpu_helper_defaults, worker->roster, on_gpu_report, worker);
    return 0;
}

static void on_lock_taken(void *arg)
{
    struct worker *worker = arg;
    struct error err = { 0 };
    if (begin(worker, &err) == 0)
        return;
    log_error("%s%s%s", err.message, err.hint[0] == '\0' ? "" : " - ", err.hint);
    leave(worker, EXIT_FAILURE);
}

/* An agent receives nothing before HELLO, so this is the end of the link. */
static void on_early_end(evutil_socket_t fd, short what, void *arg)
{
    leave(arg, EXIT_SUCCESS);
}

/* Detects that the controller has ended while waiting for the lock and, with an uplink, later too. */
static void watch_owner(struct worker *worker)
{
    const struct agent_options *options = worker->options;
    struct event **event = options->uplink_fd >= 0 ? &worker->control : &worker->link_watch;
    *event = options->uplink_fd >= 0
                 ? event_new(worker->base, options->uplink_fd, EV_READ | EV_PERSIST, on_control, worker)
                 : event_new(worker->base, options->link_fd, EV_READ, on_early_end, worker);
    if (*event == NULL || event_add(*event, NULL) < 0)
        abort(); // memory
}

static int wait_for_lock(struct worker *worker, struct error *err)
{
    const char *run_dir = worker->options->run_dir;
    bool is_taken;
    int r = make_directories(run_dir, 0755);
    if (r < 0)
        return error_set_errno(err, r, "cannot create the directory %s", run_dir);
    worker->run_fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (worker->run_fd < 0)
        return error_set_errno(err, -errno, "cannot open the directory %s", run_dir);
    watch_owner(worker);
    r = guard_open(
        worker->base, worker->run_fd, LOCK_FILE, on_lock_taken, worker, &worker->guard, &is_taken, err);
    return r == 0 && is_taken ? begin(worker, err) : r;
}

static void end(struct worker *worker)
{
    gpu_helper_free(worker->gpus);
    gpu_roster_free(worker->roster);
    agent_link_free(worker->link);
    spool_watch_close(worker->hints);
    notifiers_free(worker->notifiers);
    parker_free(worker->parker);
    job_socket_free(worker->jobs);
    effects_free(worker->effects);
    inspector_free(worker->looks);
    usage_watch_free(worker->watch);
    gpu_check_free(worker->check);
    gpu_chores_free(worker->chores);
    gpu_access_free(worker->access);
    log_streams_free(worker->streams);
    exec_steps_free(worker->exec_steps);
    port_streams_free(worker->ports);
    mps_free(worker->shares.mps);
    launcher_close(worker->launcher);
    user_resolver_free(worker->resolver);
    gpu_devices_free(worker->devices);
    if (worker->confine != NULL)
        worker->confine->close(worker->cells);
    guard_close(worker->guard);
    if (worker->link_watch != NULL)
        event_free(worker->link_watch);
    if (worker->control != NULL)
        event_free(worker->control);
    closep(&worker->early_link);
    event_base_free(worker->base);
    closep(&worker->state_fd);
    closep(&worker->run_fd);
    buffer_clear(&worker->last_gpus);
    free(worker->sent_text);
}

int worker_run(const struct agent_options *options)
{
    struct worker worker = { .options = options, .run_fd = -1, .state_fd = -1, .early_link = -1 };
    worker.users = (struct job_users){ .is_root = geteuid() == 0,
        .is_root_job_allowed = options->is_root_job_allowed,
        .adopts_any_user = options->adopts_any_user,
        .min_uid = options->min_uid,
        .is_number_enough = options->is_number_enough,
        .node = options->node };
    struct error err = { 0 };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)fcntl(options->uplink_fd >= 0 ? options->uplink_fd : options->link_fd, F_SETFD, FD_CLOEXEC);
    (void)umask(0022); // all modes that matter are given in full
    worker.base = event_base_new();
    if (worker.base == NULL)
        abort(); // memory
    if (wait_for_lock(&worker, &err) < 0) {
        log_error("%s%s%s", err.message, err.hint[0] == '\0' ? "" : " - ", err.hint);
        worker.status = EXIT_FAILURE;
    } else
        (void)event_base_dispatch(worker.base);
    end(&worker);
    return worker.status;
}
