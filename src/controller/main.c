/* SPDX-License-Identifier: MIT */
/*
 * mgpud. Order of a start: settings; directories, locks, sockets and the agent, possibly as root; dropping
 * root; store, core, links, API. The API accepts connections once the node's agent has sent HELLO (or after
 * READY_WAIT_SECONDS), so that the first request already sees the GPUs. One turn: all callbacks that are due,
 * then core_turn() (turns.c).
 *
 * With --cluster, mgpud is a standby between dropping root and opening the store (standby.c), and starts no
 * agent: all nodes join. A leader that may no longer be the only one exits; after a restart it is a standby.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/daemon.h"
#include "base/detach.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/version.h"
#include "base/wording.h"
#include "controller/api/api.h"
#include "controller/api/gate.h"
#include "controller/backup.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/identity.h"
#include "controller/config/settings.h"
#include "controller/controller.h"
#include "controller/effects.h"
#include "controller/history_keeper.h"
#include "controller/http/server.h"
#include "controller/identity/munge_worker.h"
#include "controller/libraries.h"
#include "controller/nodes/agent_process.h"
#include "controller/nodes/links.h"
#include "controller/nodes/listener.h"
#include "controller/nodes/reach.h"
#include "controller/nodes/registry.h"
#include "controller/nodes/streams.h"
#include "controller/prepare.h"
#include "controller/privileges.h"
#include "controller/ready.h"
#include "controller/reload.h"
#include "controller/results.h"
#include "controller/retention.h"
#include "controller/run_watch.h"
#include "controller/running.h"
#include "controller/slow_work.h"
#include "controller/standby.h"
#include "controller/store_report.h"
#include "controller/tcp.h"
#include "controller/turns.h"
#include "wire/directory.h"

#define READY_WAIT_SECONDS 5
#define SNAPSHOT_FIRST     5 // seconds after the start; its check covers the whole store
#define SNAPSHOT_SECONDS   600
#define JOINS_MS           2000 // for machines that are joining when mgpud is stopped
#define LAST_TURNS         3    // turns of the loop, without waiting, to send pending data

struct program {
    struct controller controller;
    struct prepared prepared;
    struct effects *effects;
    struct event *timers[2]; // ready, snapshot
    struct event *signals[3];
    struct results *results;
    struct event *leadership; // ends
    struct history_keeper *history;
    struct slow_work slow_work;
    int64_t newest_ms; // the latest time of a job at the start
    bool is_ready, is_failed;
    int argc;
    char **argv;
};

/* --- store --- */

static void on_durable(void *arg, uint64_t batch)
{
    struct controller *controller = &((struct program *)arg)->controller;
    histogram_add(
        &controller->commits, &histogram_of_work, (double)(clock_boot_us() - controller->commit_us) / 1e6);
    controller->commit_us = 0;
    core_on_durable(controller->core, batch);
    turns_end_soon(controller->turns); // results that arrived meanwhile are handled next
    serve_resume(controller->serve);
}

static void on_failed(void *arg, uint64_t batch, const struct error *err)
{
    struct program *program = arg;
    log_error("the store failed, the outcome of the last requests is unknown: %s; mgpud exits and must be "
              "restarted",
        err->message);
    serve_fail_all(program->controller.serve, err);
    program->is_failed = true;
    program->controller.exit_status = EX_TEMPFAIL;
    (void)event_base_loopbreak(program->controller.loop);
}

static void on_warning(void *arg, const struct error *err)
{
    log_warning("store: %s", err->message);
}

/* Each snapshot reports the same finding. */
static void on_verified(void *arg, const struct store_verification *verification)
{
    struct controller *controller = &((struct program *)arg)->controller;
    bool is_new = strcmp(controller->verification.finding, verification->finding) != 0;
    controller->verification = *verification;
    if (verification->findings > 0 && is_new)
        log_error("the store is damaged (%u finding%s): %s; no snapshot is made%s; 'mgpud --fsck' lists all",
            (unsigned)verification->findings, verification->findings == 1 ? "" : "s", verification->finding,
            verification->is_file_damaged ? ", and new jobs are refused" : "");
    else if (verification->findings == 0 && is_new)
        log_info("the store is intact again");
}

/* Called during the start, and by snapshots on their own thread, which do not exist before the start has
 * ended. */
static void on_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    struct slow_work *work = &((struct program *)arg)->slow_work;
    if (what == NULL) {
        slow_work_end(work);
        return;
    }
    if (work->since_ms == 0)
        slow_work_begin(work, SLOW_WORK_LOG, "ready");
    slow_work_step(work, what, done, total);
}

static void load_job(void *arg, struct job *job)
{
    struct program *program = arg;
    slow_work_step(&program->slow_work, "reading the jobs of the store", 0, 0);
    core_load_job(program->controller.core, job);
}

static void load_key(void *arg, uint64_t key_hash, uint64_t job, uint64_t spec_hash)
{
    core_load_key(arg, key_hash, job, spec_hash);
}

struct state_loading {
    const struct controller *controller;
    struct error *err;
    int result;
};

static void load_state(void *arg, const char *kind, const char *key, const uint8_t *bytes, size_t length)
{
    struct state_loading *loading = arg;
    const struct controller *controller = loading->controller;
    /* A removed node, or a former name of this machine. */
    if (strcmp(kind, CORE_NODE_SIZE) == 0 && strcmp(key, controller->options.node) != 0 &&
        registry_find(controller->registry, key) == NULL)
        return;
    if (loading->result == 0)
        loading->result = core_load_state(controller->core, kind, key, bytes, length, loading->err);
}

static int load_store(struct program *program, struct error *err)
{
    struct controller *controller = &program->controller;
    struct store_observer observer = {
        .arg = program,
        .on_durable = on_durable,
        .on_failed = on_failed,
        .on_warning = on_warning,
        .on_verified = on_verified,
        .progress = { on_progress, program },
    };
    int r = store_open_leading(program->prepared.store_dir, &observer, cluster_writer(controller->cluster),
        &controller->store, &controller->summary, err);
    if (r < 0)
        return r;
    r = process_boot_id(controller->boot_id);
    if (r < 0)
        return error_set_errno(err, r, "cannot read the boot id");
    struct core_options options = reload_core_options(controller);
    struct core_effects table;
    program->effects = effects_new(controller, &table);
    controller->core = core_new(&options, &table);
    core_load_summary(controller->core, &controller->summary);
    struct state_loading loading = { .controller = controller, .err = err };
    r = registry_load(controller->registry, err);
    if (r < 0)
        return r;
    r = store_load_state(controller->store, load_state, &loading, err);
    if (r == 0)
        r = loading.result;
    if (r == 0)
        r = store_load_jobs(controller->store, options.recent_done_max, load_job, program, err);
    if (r == 0)
        r = store_load_keys(controller->store, load_key, controller->core, err);
    program->newest_ms = core_newest_ms(controller->core);
    if (r == 0)
        core_load_end(controller->core, clock_boot_ms(), clock_wall_ms());
    if (r == 0 && controller->summary.is_old_copy)
        log_warning("the store is an older copy: all nodes are drained; cancel jobs that have already run, "
                    "then 'mgpu node resume NAME'");
    return r;
}

static int load(struct program *program, struct error *err)
{
    slow_work_begin(&program->slow_work, SLOW_WORK_LOG, NULL);
    int r = load_store(program, err);
    slow_work_end(&program->slow_work);
    return r;
}

/* --- ready --- */

static void become_ready(struct program *program)
{
    struct controller *controller = &program->controller;
    struct error err = { 0 };
    if (program->is_ready)
        return;
    program->is_ready = true;
    (void)event_del(program->timers[0]);
    int r = ready_open(controller, program->prepared.api_fd, &err);
    if (r < 0) {
        log_error("%s", err.message);
        controller->exit_status = EX_OSERR;
        (void)event_base_loopbreak(controller->loop);
        return;
    }
    bool has_tcp = controller->tcp_state.is_bound;
    log_info("mgpud %s is ready: %s/mgpud.sock%s%s, epoch %llu, %llu jobs known, %s", MGPU_VERSION,
        controller->options.run_dir,
        !has_tcp                       ? ""
        : controller->api_gate != NULL ? ", https://"
                                       : ", http://",
        has_tcp ? controller->options.listen : "", (unsigned long long)controller->summary.epoch,
        (unsigned long long)controller->summary.jobs,
        controller->is_root ? "jobs run as their submitters" : "without root: it serves one user");
    daemon_notify_ready("ready");
    detach_ready(&program->prepared.detached);
}

/* The first time, this opens the API. */
static void on_local_node_up(struct controller *controller)
{
    become_ready((struct program *)controller); // the controller is the program's first member
}

static void on_ready_wait(evutil_socket_t fd, short events, void *arg)
{
    log_warning(
        "no message from the agent of this node for %d s; the API opens without it", READY_WAIT_SECONDS);
    become_ready(arg);
}

static void on_snapshot(evutil_socket_t fd, short events, void *arg)
{
    struct program *program = arg;
    store_snapshot(program->controller.store);
    (void)evtimer_add(program->timers[1], &(struct timeval){ .tv_sec = SNAPSHOT_SECONDS });
}

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
    struct program *program = arg;
    log_info("signal %d: mgpud exits; jobs continue", (int)fd);
    (void)event_base_loopbreak(program->controller.loop);
}

static void on_reload(evutil_socket_t fd, short events, void *arg)
{
    struct program *program = arg;
    (void)reload(&program->controller, program->argc, program->argv);
}

/* From now on nothing is sent or answered: cluster_is_certain() returns false. */
static void on_leadership_end(evutil_socket_t fd, short events, void *arg)
{
    struct program *program = arg;
    struct error err = { 0 };
    log_error("this controller no longer leads the cluster: mgpud exits and must be restarted as a "
              "standby; jobs are not affected");
    (void)error_set(&err, -EIO, "this controller no longer leads the cluster");
    serve_fail_all(program->controller.serve, &err);
    program->is_failed = true;
    program->controller.exit_status = EX_TEMPFAIL;
    (void)event_base_loopbreak(program->controller.loop);
}

static void watch_leadership(struct program *program)
{
    struct controller *controller = &program->controller;
    if (controller->cluster == NULL)
        return;
    program->leadership =
        event_new(controller->loop, cluster_fd(controller->cluster), EV_READ, on_leadership_end, program);
    (void)event_add(program->leadership, NULL);
    cluster_begin_snapshots(controller->cluster);
}

static int watch(struct program *program, struct error *err)
{
    struct controller *controller = &program->controller;
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    bool is_detaching = program->prepared.detached.ready_fd >= 0;
    for (size_t i = 0; i < 3; i++) {
        /* If it was started by hand in a terminal, it ends with the terminal. */
        bool is_reload = signals[i] == SIGHUP && (is_detaching || isatty(STDIN_FILENO) == 0);
        program->signals[i] =
            evsignal_new(controller->loop, signals[i], is_reload ? on_reload : on_signal, program);
        (void)evsignal_add(program->signals[i], NULL);
    }
    program->timers[0] = evtimer_new(controller->loop, on_ready_wait, program);
    program->timers[1] = evtimer_new(controller->loop, on_snapshot, program);
    (void)evtimer_add(program->timers[0], &(struct timeval){ .tv_sec = READY_WAIT_SECONDS });
    (void)evtimer_add(program->timers[1], &(struct timeval){ .tv_sec = SNAPSHOT_FIRST });
    program->results = results_new(controller);
    streams_listen(controller->streams, take_fd(&program->prepared.link_fd));
    struct error trouble = { 0 };
    if (node_listener_update(controller->node_listener, &trouble) < 0)
        log_error("cannot accept nodes: %s", trouble.message);
    watch_leadership(program);
    if (controller->agent == NULL)
        become_ready(program);
    return agent_process_watch(controller->agent, err);
}

static void end_turn(void *arg)
{
    struct controller *controller = &((struct program *)arg)->controller;
    int64_t before_us = clock_boot_us(), version = core_version(controller->core);
    int64_t began_us = turns_step_begin();
    core_turn(controller->core, clock_boot_ms(), clock_wall_ms());
    turns_step_end(controller->turns, began_us, "scheduler", "pass");
    if (core_version(controller->core) != version)
        histogram_add(&controller->passes, &histogram_of_work, (double)(clock_boot_us() - before_us) / 1e6);
}

static void on_joins_over(evutil_socket_t fd, short events, void *arg)
{
    bool *is_over = arg;
    *is_over = true;
}

/* Machines whose tokens are being used get their answers. */
static void finish_joins(struct program *program)
{
    struct controller *controller = &program->controller;
    bool is_over = false;
    struct event *limit = evtimer_new(controller->loop, on_joins_over, &is_over);
    if (limit == NULL)
        abort(); // memory
    (void)evtimer_add(limit, &(struct timeval){ .tv_sec = JOINS_MS / 1000 });
    while (!program->is_failed && !is_over && node_listener_is_joining(controller->node_listener))
        if (!turns_run(program->controller.turns))
            break;
    event_free(limit);
    node_listener_refuse(controller->node_listener);
}

static void run(struct program *program)
{
    struct controller *controller = &program->controller;
    while (turns_run(program->controller.turns))
        continue;
    node_listener_shut(controller->node_listener);
    bool is_joining = node_listener_is_joining(controller->node_listener);
    if (is_joining)
        finish_joins(program);
    /* Sends pending data as far as sockets accept it without waiting. */
    for (int i = 0; (program->is_failed || is_joining) && i < LAST_TURNS; i++)
        (void)event_base_loop(controller->loop, EVLOOP_NONBLOCK);
}

static void clear(struct program *program)
{
    struct controller *controller = &program->controller;
    turns_free(take_ptr(program->controller.turns));
    history_keeper_free(program->history);
    run_watch_free(controller->run_watch);
    results_free(program->results);
    if (controller->tcp != NULL)
        tcp_pause(controller->tcp);
    api_gate_free(controller->api_gate);
    struct event *events[] = { program->timers[0], program->timers[1], program->signals[0],
        program->signals[1], program->signals[2], program->leadership };
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i] != NULL)
            event_free(events[i]);
    retention_free(controller->retention);
    munge_worker_free(controller->munge_worker);
    serve_close(controller->serve);
    controller->is_leaving = true;
    cluster_stop(controller->cluster);
    store_close(controller->store); // answers pending requests
    serve_free(controller->serve);
    links_free(controller->links);
    streams_free(controller->streams);
    node_listener_free(controller->node_listener);
    registry_free(controller->registry);
    agent_process_free(controller->agent);
    core_free(controller->core);
    cluster_free(controller->cluster);
    effects_free(program->effects);
    if (controller->loop != NULL)
        event_base_free(controller->loop);
    tcp_free(controller->tcp);
    settings_clear(&controller->options);
    prepare_note_stop(&program->prepared);
    prepare_clear(&program->prepared);
}

static int open_cluster(struct program *program, const struct settings_actions *actions, struct error *err)
{
    struct controller *controller = &program->controller;
    const struct cluster_settings *settings = &controller->options.cluster;
    if (settings->etcd == NULL)
        return actions->migrate || actions->leave_cluster
                   ? error_set(err, -EINVAL, "--migrate and --leave-cluster require --cluster")
                   : 0;
    _cleanup_free_ char *api = NULL, *nodes = NULL;
    reach_controller(
        settings->address, controller->options.listen, controller->options.nodes_listen, &api, &nodes);
    const struct cluster_options options = {
        .etcd = settings->etcd,
        .ca = settings->ca,
        .cert = settings->cert,
        .key = settings->key,
        .name = controller->options.node,
        .address = api,
        .nodes_address = nodes,
        .store_dir = program->prepared.store_dir,
        .lease_ms = settings->lease_ms,
    };
    int r = cluster_open(&options, &controller->cluster, err);
    return r == 0 && actions->migrate ? cluster_found(controller->cluster, err) : r;
}

/* All controllers have the same keys: those in etcd, or the ones created here. */
static int share_identity(struct program *program, struct error *err)
{
    struct controller *controller = &program->controller;
    const struct tls_authority *authority = NULL;
    _cleanup_free_ char *dir = xasprintf("%s/tls", program->prepared.store_dir);
    int r = cluster_identity_fetch(controller->cluster, dir, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = node_listener_authority(controller->node_listener, &authority, err);
    return r == 0 ? cluster_identity_put(controller->cluster, dir, err) : r;
}

/* 1: mgpud continues as the controller that decides, alone or as the leader. 0: it was told to exit. */
static int begin(struct program *program, const struct settings_actions *actions, struct error *err)
{
    struct controller *controller = &program->controller;
    int r = prepare(controller, &program->prepared, err);
    if (r == 0)
        privileges_limit_files(program->prepared.store_dir, controller->options.run_dir);
    if (r == 0)
        r = open_cluster(program, actions, err);
    if (r < 0)
        return r;
    privileges_limit_calls();
    controller->loop = turns_loop_new();
    if (controller->cluster == NULL)
        return 1;
    r = standby_run(controller, &program->prepared, err);
    if (r != 1 || !actions->leave_cluster)
        return r;
    r = cluster_dissolve(controller->cluster, err);
    if (r == 0)
        log_info("the store is this machine's own again, and etcd no longer contains any of it: start mgpud "
                 "without --cluster");
    return r;
}

static int start(struct program *program, struct error *err)
{
    struct controller *controller = &program->controller;
    controller->on_local_node_up = on_local_node_up;
    controller->links = links_new(controller);
    controller->streams = streams_new(controller);
    controller->registry = registry_new(controller);
    controller->node_listener = node_listener_new(controller, program->prepared.store_dir);
    int r = controller->cluster != NULL ? share_identity(program, err) : 0;
    if (r == 0)
        r = load(program, err);
    if (r < 0)
        return r;
    if (controller->options.is_munge_on)
        r = munge_worker_new(
            controller->loop, controller->options.munge_socket, &controller->munge_worker, err);
    if (r < 0)
        return r;
    directory_start(); // from here on, lookups in the user database have a timeout
    program->history = history_keeper_new(controller, program->prepared.store_dir);
    controller->serve = api_new(controller);
    api_serve_jobs(controller->serve);
    controller->retention = retention_new(controller, program->newest_ms);
    program->controller.turns = turns_new(controller->loop, end_turn, program);
    return watch(program, err);
}

/* With the names of the command that started mgpud (compat/personalities). */
static int fail(const struct wording *wording, const struct error *err)
{
    _cleanup_free_ char *message = wording_apply(wording, err->message);
    _cleanup_free_ char *hint = wording_apply(wording, err->hint);
    log_error("%s", message);
    if (hint[0] != '\0')
        (void)fprintf(stderr, "hint: %s\n", hint);
    return err->code == -EINVAL || err->code == -ERANGE ? EX_USAGE : 1;
}

static void print_setting(void *arg, const struct setting *setting)
{
    if (strcmp(setting->origin, "default") != 0)
        (void)printf("%s: %s (%s)\n", setting->key, setting->value, setting->origin);
}

static void print_config(const struct controller_options *options)
{
    for (size_t i = 0; i < options->n_files; i++)
        (void)printf("%s is valid\n", options->files[i]);
    if (options->n_files == 0)
        (void)printf("no configuration file; all settings have their defaults\n");
    settings_visit(options, print_setting, NULL);
    for (size_t i = 0; i < options->warnings.count; i++)
        (void)printf("warning: %s\n", options->warnings.items[i]);
}

/* Carries out commands that exit at once. Returns the exit status, or -1: mgpud is to be started. */
static int run_actions(const struct wording *wording, const struct settings_actions *actions,
    const struct controller_options *options)
{
    struct error err = { 0 };
    if (actions->help)
        settings_print_help();
    else if (actions->version)
        (void)printf("mgpud %s\n", MGPU_VERSION);
    else if (actions->check_config)
        print_config(options);
    else if (actions->example_config)
        settings_print_example();
    else if (actions->reload)
        reload_warn(options); // those of the running mgpud go to its log
    else if (!actions->fsck && !actions->stop && actions->backup == NULL && actions->restore == NULL)
        return -1;
    if (actions->help || actions->version || actions->check_config || actions->example_config)
        return 0;
    int r = actions->stop              ? running_stop(options->run_dir, &err)
            : actions->reload          ? running_reload(options->run_dir, &err)
            : actions->backup != NULL  ? backup_write(options, actions->backup, &err)
            : actions->restore != NULL ? backup_restore(options, geteuid() == 0, actions->restore, &err)
                                       : store_report(options, &err);
    return r < 0 ? fail(wording, &err) : r > 0;
}

int main(int argc, char **argv)
{
    struct program program = { .prepared = PREPARED_EMPTY, .argc = argc, .argv = argv };
    struct controller *controller = &program.controller;
    struct settings_actions actions = { 0 };
    struct error err = { 0 };
    _cleanup_free_ struct wording *wording = wording_take_over();
    controller->is_root = geteuid() == 0;
    daemon_clean_environment();
    daemon_spare_from_oom();
    memory_keep_freed();
    libraries_end_without_memory();
    (void)signal(SIGPIPE, SIG_IGN);
    log_open("mgpud", false);
    int r = settings_default(&controller->options, controller->is_root, &err);
    if (r == 0)
        r = settings_read(argc, argv, controller->is_root, &controller->options, &actions, &err);
    if (r < 0 && err.hint[0] == '\0')
        (void)error_hint(&err, "mgpud --help lists the options; mgpud --check-config checks the files");
    int status = r < 0 ? fail(wording, &err) : run_actions(wording, &actions, &controller->options);
    if (status >= 0) {
        settings_clear(&controller->options);
        return status;
    }
    log_open("mgpud", controller->options.is_verbose);
    reload_warn(&controller->options);
    controller->started_wall_ms = clock_wall_ms();
    r = begin(&program, &actions, &err);
    if (r == 1 && (r = start(&program, &err)) == 0)
        run(&program);
    status = r < 0 ? fail(wording, &err) : controller->exit_status;
    clear(&program);
    return status;
}
