/* SPDX-License-Identifier: MIT */
/* From a launch message to an exit record, with the real shepherd. Runs as whoever runs the test. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confine/limit_files.h"
#include "agent/confine/limits.h"
#include "agent/host/pids_max.h"
#include "agent/launch/early.h"
#include "agent/launch/launcher.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "job/launch.h"
#include "job/start_failure.h"
#include "job/state.h"
#include "unit_test.h"

#define DEADLINE_MS 20000

struct node {
    char top[64];
    char *run_dir, *state_dir;
    struct confine_state *cells;
    const struct confine *confine;
    struct gpu_devices *devices;
    struct launcher *launcher;
    int hints_fd;
    uint32_t pids_max; // as the launcher is told
    bool is_number_enough;
    struct message_launch launch;
    struct job_spec job;
    struct spool_id id;
    struct launch_exit exit;
};

static void open_launcher(struct node *node)
{
    struct error err = { 0 };
    struct launcher_options options = { .run_dir = node->run_dir,
        .state_dir = node->state_dir,
        .log_dir = NULL,
        .shepherd = getenv("MGPU_SHEPHERD"),
        .users = { .is_root = geteuid() == 0,
            .is_root_job_allowed = true,
            .is_number_enough = node->is_number_enough,
            .node = "box" },
        .pids_max = node->pids_max,
        .devices = node->devices,
        .is_guarding = node->devices != NULL };
    _cleanup_free_ char *logs = xasprintf("%s/logs", node->state_dir);
    options.log_dir = logs;
    assert_non_null(options.shepherd);
    if (launcher_open(&options, node->confine, node->cells, &node->launcher, &err) < 0)
        fail_msg("%s", err.message);
}

/* As the request is by now. */
static int stage_by(struct launcher *launcher, struct node *node, struct error *err)
{
    free(node->launch.spec.bytes);
    record_pack(&job_spec_record, &node->job, &node->launch.spec);
    return launcher_stage(launcher, &node->launch, err);
}

static int stage(struct node *node, struct error *err)
{
    return stage_by(node->launcher, node, err);
}

static void bind_hints(struct node *node)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/spool/" SPOOL_HINTS, node->run_dir);
    node->hints_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(node->hints_fd, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static int setup(void **state)
{
    struct node *node = xcalloc(1, sizeof(*node));
    (void)snprintf(node->top, sizeof(node->top), "/tmp/mgpu-launcher.XXXXXX");
    assert_non_null(mkdtemp(node->top));
    node->run_dir = xasprintf("%s/run", node->top);
    node->state_dir = xasprintf("%s/state", node->top);
    assert_int_equal(mkdir(node->run_dir, 0755), 0);
    for (size_t i = 0; confine_kinds[i] != NULL && node->confine == NULL; i++)
        if (confine_kinds[i]->open(node->run_dir, NULL, &node->cells, NULL) == 0)
            node->confine = confine_kinds[i];
    open_launcher(node);
    bind_hints(node);
    job_spec_init(&node->job);
    strings_add(&node->job.command, "/bin/sh");
    strings_add(&node->job.command, "-c");
    strings_add(&node->job.command, "echo \"$MGPU_JOB_ID $CUDA_VISIBLE_DEVICES $PWD\"; exit 17");
    node->job.cwd = xstrdup("/");
    node->launch = (struct message_launch){
        .id.job = 42, .id.attempt = 1, .token = 9, .uid = geteuid(), .gid = getegid()
    };
    node->id = (struct spool_id){ .job = 42, .attempt = 1 };
    gpu_grants_add(&node->launch.gpus, 3, "GPU-d", 0, 0);
    *state = node;
    return 0;
}

static int teardown(void **state)
{
    struct node *node = *state;
    launcher_close(node->launcher);
    gpu_devices_free(node->devices);
    node->confine->close(node->cells);
    closep(&node->hints_fd);
    record_clear(&launch_exit_record, &node->exit);
    gpu_grants_clear(&node->launch.gpus);
    job_spec_clear(&node->job);
    free(node->launch.spec.bytes);
    (void)unit_test_remove(node->top);
    free(node->run_dir);
    free(node->state_dir);
    free(node);
    return 0;
}

#define CASE(name, node) TEST_ON(name, struct node *node, setup, teardown)

static void await_hint(struct node *node, const char *expected)
{
    for (;;) {
        struct pollfd source = { node->hints_fd, POLLIN, 0 };
        char text[96] = "";
        assert_int_equal(poll(&source, 1, DEADLINE_MS), 1);
        assert_true(recv(node->hints_fd, text, sizeof(text) - 1, 0) > 0);
        if (strcmp(text, expected) == 0)
            return;
    }
}

static int open_entry(const struct node *node)
{
    return openat(launcher_spool_fd(node->launcher), "42.1.0.0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void read_exit(struct node *node)
{
    struct error err = { 0 };
    _cleanup_close_ int fd = open_entry(node);
    record_clear(&launch_exit_record, &node->exit);
    if (file_read_record(fd, SPOOL_EXIT, &launch_exit_record, &node->exit, &err) < 0)
        fail_msg("%s", err.message);
}

/* It is the fork server's child, not ours: its end shows on the pidfd, its status nowhere. */
static void await_end(struct launcher_process *process)
{
    struct pollfd source = { process->end_fd, POLLIN, 0 };
    assert_int_equal(poll(&source, 1, DEADLINE_MS), 1);
    (void)close(process->end_fd);
}

static struct launcher_process stage_and_start(struct node *node)
{
    struct error err = { 0 };
    struct launcher_process process;
    if (stage(node, &err) != LAUNCHER_STAGED)
        fail_msg("%s", err.message);
    if (launcher_start(node->launcher, &node->id, &process, &err) < 0)
        fail_msg("%s", err.message);
    return process;
}

CASE(a_launch_message_becomes_an_exit_record, node)
{
    struct launcher_process process = stage_and_start(node);
    await_hint(node, "42.1.0.0 exit");
    read_exit(node);
    assert_int_equal(node->exit.end, END_EXIT);
    assert_int_equal(node->exit.exit_code, 17);
    _cleanup_buffer_ struct buffer log = { 0 };
    assert_int_equal(file_read(AT_FDCWD, node->exit.log_path, 4096, &log), 0);
    assert_string_equal(buffer_text(&log), "42 3 /\n");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
    assert_int_equal(open_entry(node), -1);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

CASE(staging_twice_changes_nothing, node)
{
    struct launch_spec spec;
    assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
    node->launch.token = 77;
    assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
    _cleanup_close_ int fd = open_entry(node);
    assert_int_equal(file_read_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, NULL), 0);
    assert_int_equal(spec.token, 9);
    record_clear(&launch_spec_record, &spec);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

/* --- devices --- */

/* A launcher of a node with one GPU, the one that is granted. */
static void confine_devices(struct node *node, const struct confine *confine)
{
    struct gpu_devices_places places = { .device_dir = node->top, .has_simulated = true };
    char uuid[] = "GPU-d";
    struct gpu_state gpu = { .index = 3, .uuid = uuid };
    struct record_list gpus = { &gpu, 1 };
    node->confine = confine;
    node->devices = gpu_devices_new(&places);
    gpu_devices_update(node->devices, &gpus);
    launcher_close(node->launcher);
    open_launcher(node);
}

CASE(a_step_keeps_the_rules_of_its_devices_in_every_cell, node)
{
    struct launch_spec spec;
    int shepherd_fd;
    char *cell;
    if (node->confine->can_guard(node->cells, NULL) < 0)
        skip();
    confine_devices(node, node->confine);
    assert_int_equal(launcher_guard(node->launcher, &node->id, NULL), -ENOENT);
    assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
    assert_int_equal(launcher_guard(node->launcher, &node->id, NULL), 0);
    _cleanup_close_ int fd = open_entry(node);
    assert_int_equal(file_read_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, NULL), 0);
    const struct device_rule *first = spec.devices.items;
    assert_int_equal(first->major, 195);
    assert_int_equal(first->minor_first, 3);
    assert_true(first->is_allowed);
    record_clear(&launch_spec_record, &spec);
    assert_int_equal(node->confine->remove(node->cells, &node->id), 0);
    assert_int_equal(launcher_guard(node->launcher, &node->id, NULL), -ENOENT);
    assert_int_equal(node->confine->prepare(node->cells, &node->id, &cell, &shepherd_fd, NULL), 0);
    free(cell);
    assert_int_equal(launcher_guard(node->launcher, &node->id, NULL), 1);
    assert_int_equal(launcher_guard(node->launcher, &node->id, NULL), 0);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

CASE(what_was_staged_without_rules_is_not_started_where_they_are_promised, node)
{
    struct launcher_process process;
    struct error err = { 0 };
    assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
    confine_devices(node, node->confine);
    assert_int_equal(launcher_start(node->launcher, &node->id, &process, &err), -ENODATA);
    assert_non_null(strstr(err.message, "before devices were confined"));
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

static int refuse_to_guard(
    struct confine_state *state, const struct spool_id *id, const struct launch_spec *spec, struct error *err)
{
    return spec->devices.count == 0 ? 0 : error_set(err, -EPERM, "no filter today");
}

CASE(what_cannot_be_guarded_is_not_staged_and_not_started, node)
{
    struct confine refusing = *node->confine;
    const struct confine *usual = node->confine;
    struct error err = { 0 };
    struct launcher_process process;
    refusing.guard = refuse_to_guard;
    confine_devices(node, &refusing);
    assert_int_equal(stage(node, &err), -EPERM);
    assert_string_equal(err.message, "no filter today");
    assert_int_equal(open_entry(node), -1);
    refusing.guard = usual->guard;
    if (usual->can_guard(node->cells, NULL) == 0) {
        assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
        refusing.guard = refuse_to_guard;
        launcher_close(node->launcher); // the next agent does not know who staged it
        open_launcher(node);
        assert_int_equal(launcher_start(node->launcher, &node->id, &process, &err), -EPERM);
    }
    node->confine = usual;
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

/* The user database may have it again in a moment: nothing is written that would be an end. */
/* --- steps that start early --- */

/* Of the only GPU in its spec, which is what its filter is made of at any later start of an agent. */
static bool is_gpu_allowed(const struct node *node)
{
    struct launch_spec spec;
    _cleanup_close_ int fd = open_entry(node);
    assert_int_equal(file_read_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, NULL), 0);
    assert_true(spec.is_early);
    const struct device_rule *first = spec.devices.items;
    bool is_allowed = first->is_allowed != 0;
    assert_int_equal(first->major, 195);
    record_clear(&launch_spec_record, &spec);
    return is_allowed;
}

static void stage_early(struct node *node, const struct confine *confine)
{
    node->launch.is_early = 1;
    confine_devices(node, confine);
    assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
    assert_false(is_gpu_allowed(node));
}

/* The init's end of the pipe. */
static int open_grant(const struct node *node)
{
    _cleanup_close_ int entry_fd = open_entry(node);
    int fd = openat(entry_fd, SPOOL_GRANT, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

CASE(the_grant_opens_the_filter_and_is_told_to_the_init, node)
{
    char byte;
    if (node->confine->can_guard(node->cells, NULL) < 0)
        skip();
    stage_early(node, node->confine);
    _cleanup_close_ int fd = open_grant(node);
    assert_int_equal(read(fd, &byte, 1), -1);
    for (int round = 0; round < 2; round++) { // also one that comes again
        assert_int_equal(launcher_grant(node->launcher, &node->id, NULL), 0);
        assert_true(is_gpu_allowed(node));
        assert_int_equal(read(fd, &byte, 1), 1);
    }
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

static bool are_gpus_refused, is_closing_refused;

/* In place of the filter of the cgroup, which cannot be changed in this direction. */
static int guard_in_part(
    struct confine_state *state, const struct spool_id *id, const struct launch_spec *spec, struct error *err)
{
    const struct device_rule *first = spec->devices.items;
    bool is_refused = first->is_allowed != 0 ? are_gpus_refused : is_closing_refused;
    return is_refused ? error_set(err, -EPERM, "no filter today") : 0;
}

CASE(a_filter_that_cannot_be_opened_tells_the_init_nothing_and_is_closed_again, node)
{
    struct confine refusing = *node->confine;
    const struct confine *usual = node->confine;
    struct error err = { 0 };
    char byte;
    refusing.guard = guard_in_part;
    are_gpus_refused = is_closing_refused = false;
    stage_early(node, &refusing);
    _cleanup_close_ int fd = open_grant(node);
    are_gpus_refused = true;
    assert_int_equal(launcher_grant(node->launcher, &node->id, &err), -EPERM);
    assert_string_equal(err.message, "no filter today");
    assert_int_equal(read(fd, &byte, 1), -1);
    assert_false(is_gpu_allowed(node));
    is_closing_refused = true;
    assert_int_equal(launcher_grant(node->launcher, &node->id, &err), -ENOTRECOVERABLE);
    assert_int_equal(read(fd, &byte, 1), -1);
    node->confine = usual;
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

/* How many filters of system calls the command of a step is behind. */
static int count_filters(struct node *node, struct launcher_process *ret)
{
    strings_clear(&node->job.command);
    strings_add(&node->job.command, "/bin/sh");
    strings_add(&node->job.command, "-c");
    strings_add(&node->job.command, "exit $(sed -n 's/^Seccomp_filters:[[:space:]]*//p' /proc/self/status)");
    *ret = stage_and_start(node);
    await_hint(node, "42.1.0.0 exit");
    read_exit(node);
    assert_int_equal(node->exit.end, END_EXIT);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(ret);
    launcher_note_end(node->launcher, ret->pid);
    return node->exit.exit_code;
}

CASE(a_step_is_behind_no_gate_after_one_of_the_same_shepherd_that_was, node)
{
    struct launcher_process first, second, third;
    if (node->confine->can_guard(node->cells, NULL) < 0)
        skip();
    confine_devices(node, node->confine);
    int usual = count_filters(node, &first);
    node->launch.is_early = 1;
    assert_int_equal(count_filters(node, &second), usual + 1);
    node->launch.is_early = 0;
    assert_int_equal(count_filters(node, &third), usual);
    assert_int_equal(second.pid, first.pid);
    assert_int_equal(third.pid, first.pid);
}

CASE(what_cannot_start_early_is_refused_for_good, node)
{
    struct error err = { 0 };
    node->launch.is_early = 1;
    assert_int_equal(stage(node, &err), LAUNCHER_REFUSED);
    assert_string_equal(err.message, "it cannot start early where GPUs are not confined");
    node->launch.id.attempt = 2;
    node->job.tty = true;
    confine_devices(node, node->confine);
    assert_int_equal(stage(node, &err), LAUNCHER_REFUSED);
    assert_non_null(strstr(err.message, "it is interactive"));
}

CASE(an_unknown_user_is_no_end_of_the_job, node)
{
    struct error err = { 0 };
    node->launch.uid = 4000000001U;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(stage(node, &err), -ENOENT);
        assert_int_equal(err.kind, START_USER);
        assert_non_null(strstr(err.message, "4000000001"));
    }
    assert_true(launcher_open_entry(node->launcher, &node->id) < 0);
}

CASE(a_user_of_another_name_is_refused_unless_numbers_are_enough, node)
{
    struct error err = { 0 };
    node->launch.user = (char[]){ "no-such-user" };
    assert_int_equal(stage(node, &err), LAUNCHER_REFUSED);
    read_exit(node);
    assert_int_equal(node->exit.end, END_START_FAILED);
    assert_non_null(strstr(node->exit.text, "on node box user id "));
    assert_non_null(strstr(node->exit.text, ", not no-such-user"));
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    node->job.ask.adopted_pid = (uint32_t)getpid();
    assert_int_equal(stage(node, &err), LAUNCHER_REFUSED);
    node->job.ask.adopted_pid = 0;
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    node->is_number_enough = true;
    launcher_close(node->launcher);
    open_launcher(node);
    assert_int_equal(stage(node, &err), LAUNCHER_STAGED);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

/* What the other user may do with it, as that user. */
static bool may(const struct node *node, const char *path, int mode)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        bool is_other = setgroups(0, NULL) == 0 &&
                        setresgid(node->launch.gid, node->launch.gid, node->launch.gid) == 0 &&
                        setresuid(node->launch.uid, node->launch.uid, node->launch.uid) == 0;
        _exit(is_other && faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

/* He could fill the memory that RUN is with a file of his own; and others may not read it. */
CASE(a_script_belongs_to_root_and_is_read_by_its_user_alone, node)
{
    struct stat st;
    if (geteuid() != 0)
        skip();
    _cleanup_free_ char *path = xasprintf("%s/scripts/42.1.0.0/sh", node->run_dir);
    assert_int_equal(chmod(node->top, 0755), 0);
    node->launch.uid = 1;
    node->launch.gid = 1;
    node->job.script = xstrdup("#!/bin/sh\n");
    assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_true(may(node, path, R_OK | X_OK));
    assert_false(may(node, path, W_OK));
    node->launch.uid = 2; // in the same group
    assert_false(may(node, path, R_OK));
}

CASE(the_list_of_hosts_is_the_users_and_goes_with_the_attempt, node)
{
    struct launch_peer peers[] = {
        { .name = (char[]){ "n1" }, .address = (char[]){ "10.0.0.1" }, .gpus = 4 },
        { .name = (char[]){ "n2" }, .address = (char[]){ "fd00::2" } },
    };
    _cleanup_free_ char *path = xasprintf("%s/hosts/42.1.0.0", node->run_dir);
    _cleanup_buffer_ struct buffer text = { 0 };
    struct stat st;
    node->launch.peers = (struct record_list){ peers, 2 };
    for (int i = 0; i < 2; i++) { // an attempt that was launched once before its spool entry was there
        assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0400);
        assert_int_equal(st.st_uid, geteuid());
        _cleanup_close_ int fd = open_entry(node);
        assert_int_equal(unlinkat(fd, SPOOL_SPEC, 0), 0);
    }
    assert_int_equal(file_read(AT_FDCWD, path, 4096, &text), 0);
    assert_string_equal(buffer_text(&text), "10.0.0.1 slots=4\nfd00::2 slots=1\n");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    assert_int_equal(access(path, F_OK), -1);
}

CASE(a_launch_that_cannot_be_read_ends_for_good, node)
{
    struct error err = { 0 };
    node->launch.defect = "field user has 4097 bytes; at most 4096";
    assert_int_equal(stage(node, &err), LAUNCHER_REFUSED);
    read_exit(node);
    assert_int_equal(node->exit.end, END_START_FAILED);
    assert_int_equal(node->exit.is_executed, 0);
    assert_non_null(strstr(node->exit.text, "field user has 4097 bytes; at most 4096"));
    node->launch.defect = NULL;
    node->launch.id.attempt = 2;
    node->job.name = xcalloc(1, SPEC_NAME_MAX + 2);
    memset(node->job.name, 'x', SPEC_NAME_MAX + 1);
    assert_int_equal(stage(node, &err), LAUNCHER_REFUSED);
    assert_non_null(strstr(err.message, "its request cannot be read: field name has 129 bytes; at most 128"));
    node->launch.id.attempt = 3;
    node->launch.spec.length = 0;
    assert_int_equal(launcher_stage(node->launcher, &node->launch, &err), LAUNCHER_REFUSED);
    assert_non_null(strstr(err.message, "did not contain its request"));
}

/* What a shepherd could not read would be started again and again. */
CASE(a_step_whose_spec_would_be_over_a_limit_is_refused, node)
{
    struct error err = { 0 };
    char *value = xcalloc(1, 70000 + 16);
    memset(value, 'x', 70000);
    memcpy(value, "GPU-", 4);
    struct gpu_grant *grants = node->launch.gpus.items;
    free(grants[0].uuid);
    grants[0].uuid = value;
    assert_int_equal(stage(node, &err), LAUNCHER_REFUSED);
    read_exit(node);
    assert_int_equal(node->exit.end, END_START_FAILED);
    assert_non_null(strstr(node->exit.text, "bytes; at most"));
}

CASE(roots_jobs_need_to_be_allowed, node)
{
    struct error err = { 0 };
    struct launcher *strict = NULL;
    struct launcher_options options = { .run_dir = node->run_dir,
        .state_dir = node->state_dir,
        .shepherd = getenv("MGPU_SHEPHERD"),
        .users = { .is_root = true, .node = "box" } };
    if (geteuid() != 0)
        skip();
    assert_int_equal(launcher_open(&options, node->confine, node->cells, &strict, &err), 0);
    assert_int_equal(stage_by(strict, node, &err), LAUNCHER_REFUSED);
    assert_string_equal(err.message,
        "jobs of root are not allowed on node box: its mgpu-agent was started without --allow-root-jobs");
    /* An adoption of a process of root is no way around it. */
    node->launch.id.attempt = 2;
    node->job.ask.adopted_pid = 1;
    assert_int_equal(stage_by(strict, node, &err), LAUNCHER_REFUSED);
    launcher_close(strict);
}

CASE(a_command_reaches_the_shepherd, node)
{
    strings_clear(&node->job.command);
    strings_add(&node->job.command, "sleep");
    strings_add(&node->job.command, "98721");
    assert_int_equal(launcher_command(node->launcher, &node->id, SIGTERM, 5000), -ENOENT);
    struct launcher_process process = stage_and_start(node);
    await_hint(node, "42.1.0.0 started");
    assert_int_equal(launcher_command(node->launcher, &node->id, SIGTERM, 5000), 0);
    await_hint(node, "42.1.0.0 exit");
    read_exit(node);
    assert_int_equal(node->exit.end, END_CANCELLED);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
}

CASE(a_dead_shepherd_is_replaced_by_an_adopter, node)
{
    struct error err = { 0 };
    strings_clear(&node->job.command);
    strings_add(&node->job.command, "/bin/sh");
    strings_add(&node->job.command, "-c");
    strings_add(&node->job.command, "sleep 0.2; exit 19");
    struct launcher_process process = stage_and_start(node);
    await_hint(node, "42.1.0.0 started");
    (void)kill(process.pid, SIGKILL);
    await_end(&process);
    assert_int_equal(launcher_adopt(node->launcher, &node->id, &process, &err), 0);
    await_hint(node, "42.1.0.0 exit");
    read_exit(node);
    assert_int_equal(node->exit.end, END_EXIT);
    assert_int_equal(node->exit.exit_code, 19);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
}

CASE(a_living_step_is_not_discarded, node)
{
    if (node->confine != &confine_cgroup2)
        skip();
    strings_clear(&node->job.command);
    strings_add(&node->job.command, "sleep");
    strings_add(&node->job.command, "98722");
    struct launcher_process process = stage_and_start(node);
    await_hint(node, "42.1.0.0 started");
    assert_int_equal(launcher_discard(node->launcher, &node->id), -EBUSY);
    _cleanup_close_ int fd = open_entry(node);
    assert_true(fd >= 0);
    assert_int_equal(launcher_command(node->launcher, &node->id, SIGKILL, 0), 0);
    await_hint(node, "42.1.0.0 exit");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
}

CASE(an_exit_record_survives_the_loss_of_the_spool, node)
{
    struct error err = { 0 };
    struct launcher_process process = stage_and_start(node);
    /* Nobody fetches it: the shepherd copies it and leaves. */
    await_end(&process);
    assert_int_equal(spool_remove(launcher_spool_fd(node->launcher), "42.1.0.0"), 0);
    assert_int_equal(launcher_restore(node->launcher, &err), 0);
    assert_int_equal(launcher_restore(node->launcher, &err), 0);
    read_exit(node);
    assert_int_equal(node->exit.exit_code, 17);
    _cleanup_close_ int fd = open_entry(node);
    assert_int_equal(spool_verdict(fd), VERDICT_GO);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    _cleanup_free_ char *copy = xasprintf("%s/exits/42.1.0.0.exit", node->state_dir);
    assert_int_equal(access(copy, F_OK), -1);
}

CASE(an_entry_that_an_agent_had_only_begun_to_restore_is_restored, node)
{
    struct error err = { 0 };
    struct launcher_process process = stage_and_start(node);
    await_end(&process);
    assert_int_equal(spool_remove(launcher_spool_fd(node->launcher), "42.1.0.0"), 0);
    assert_int_equal(mkdirat(launcher_spool_fd(node->launcher), "42.1.0.0", 0700), 0);
    assert_int_equal(launcher_restore(node->launcher, &err), 0);
    read_exit(node);
    assert_int_equal(node->exit.exit_code, 17);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    assert_int_equal(launcher_restore_one(node->launcher, &node->id, &err), -ENOENT);
}

/* More processes than Linux can count are refused by the kernel. */
CASE(a_step_that_cannot_be_limited_is_not_staged, node)
{
    struct error err = { 0 };
    if (limits_how(node->confine->limits(node->cells), LIMIT_PIDS) == NULL)
        skip();
    launcher_close(node->launcher);
    node->pids_max = 2 * PIDS_MAX;
    open_launcher(node);
    assert_int_equal(stage(node, &err), -EINVAL);
    assert_non_null(strstr(err.message, "pids.max"));
    assert_int_equal(open_entry(node), -1);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

static void read_spec(const struct node *node, struct launch_spec *ret)
{
    _cleanup_close_ int fd = open_entry(node);
    assert_int_equal(file_read_record(fd, SPOOL_SPEC, &launch_spec_record, ret, NULL), 0);
}

/* A service manager made our parent anew between stage and start. */
CASE(a_cell_that_was_made_anew_is_limited_again, node)
{
    struct error err = { 0 };
    struct launch_spec spec;
    struct launcher_process process;
    if (node->confine != &confine_cgroup2 ||
        limits_how(node->confine->limits(node->cells), LIMIT_PIDS) == NULL)
        skip();
    launcher_close(node->launcher);
    node->pids_max = 77;
    open_launcher(node);
    strings_clear(&node->job.command);
    strings_add(&node->job.command, "sleep");
    strings_add(&node->job.command, "98723");
    assert_int_equal(stage(node, &err), LAUNCHER_STAGED);
    read_spec(node, &spec);
    _cleanup_free_ char *attempt = xstrdup(spec.job_cgroup);
    *strrchr(attempt, '/') = '\0';
    assert_int_equal(rmdir(spec.job_cgroup), 0);
    assert_int_equal(rmdir(attempt), 0);
    for (size_t i = 0; i < spec.v1_cgroups.count; i++)
        assert_int_equal(rmdir(spec.v1_cgroups.items[i]), 0);
    assert_int_equal(launcher_start(node->launcher, &node->id, &process, &err), 0);
    await_hint(node, "42.1.0.0 started");
    char text[32] = "";
    bool is_there = limit_files_read(attempt, "pids.max", text, sizeof(text));
    for (size_t i = 0; i < spec.v1_cgroups.count && !is_there; i++)
        is_there = limit_files_read(spec.v1_cgroups.items[i], "pids.max", text, sizeof(text));
    assert_true(is_there);
    assert_string_equal(text, "77");
    record_clear(&launch_spec_record, &spec);
    assert_int_equal(launcher_command(node->launcher, &node->id, SIGKILL, 0), 0);
    await_hint(node, "42.1.0.0 exit");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
}

CASE(each_user_gets_a_log_directory_of_his_own, node)
{
    struct stat st;
    if (geteuid() != 0)
        skip();
    node->launch.uid = 65534;
    assert_int_equal(stage(node, NULL), LAUNCHER_STAGED);
    _cleanup_free_ char *path = xasprintf("%s/logs/65534", node->state_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 65534);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
}

/* The fork server: our child of that name. */
static pid_t find_server(void)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    _cleanup_buffer_ struct buffer children = { 0 };
    assert_int_equal(file_read(AT_FDCWD, path, 4096, &children), 0);
    char *rest = buffer_text(&children);
    for (char *word = strsep(&rest, " "); word != NULL && *word != '\0'; word = strsep(&rest, " ")) {
        _cleanup_buffer_ struct buffer name = { 0 };
        (void)snprintf(path, sizeof(path), "/proc/%s/comm", word);
        if (file_read(AT_FDCWD, path, 64, &name) == 0 && strcmp(buffer_text(&name), "mgpu-forks\n") == 0)
            return (pid_t)atoi(word);
    }
    return -1;
}

CASE(a_fork_server_that_dies_costs_nothing, node)
{
    for (int round = 0; round < 3; round++) {
        struct launcher_process process = stage_and_start(node);
        await_hint(node, "42.1.0.0 exit");
        read_exit(node);
        assert_int_equal(node->exit.exit_code, 17);
        assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
        await_end(&process);
        pid_t server = find_server();
        if (server > 0)
            assert_int_equal(kill(server, SIGKILL), 0);
        (void)kill(process.pid, SIGKILL); // it would serve the next one
    }
}

/* --- shepherds that are kept --- */

static struct launcher_process run_step(struct node *node)
{
    struct launcher_process process = stage_and_start(node);
    await_hint(node, "42.1.0.0 exit");
    read_exit(node);
    assert_int_equal(node->exit.exit_code, 17);
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
    launcher_note_end(node->launcher, process.pid);
    return process;
}

static void await_gone(int pidfd)
{
    struct pollfd source = { pidfd, POLLIN, 0 };
    assert_int_equal(poll(&source, 1, DEADLINE_MS), 1);
}

static int open_process(pid_t pid)
{
    int pidfd = process_open(pid, process_start_time(pid));
    assert_true(pidfd >= 0);
    return pidfd;
}

static size_t count_entries(pid_t pid, const char *name)
{
    size_t count = 0;
    _cleanup_free_ char *path = xasprintf("/proc/%d/%s", (int)pid, name);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(directory);
    return count;
}

CASE(a_shepherd_has_one_step_after_the_other, node)
{
    pid_t first = run_step(node).pid;
    for (int round = 0; round < 5; round++)
        assert_int_equal(run_step(node).pid, first);
}

/* The agent may take the next launch before it looks at the end of the last step. */
CASE(a_shepherd_whose_end_was_not_noticed_gets_no_step, node)
{
    struct launcher_process first = stage_and_start(node);
    struct pollfd source = { first.end_fd, POLLIN, 0 };
    await_hint(node, "42.1.0.0 exit");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    assert_int_equal(poll(&source, 1, DEADLINE_MS), 1);
    assert_int_not_equal(run_step(node).pid, first.pid);
    assert_int_equal(poll(&source, 1, 0), 1);
    launcher_note_end(node->launcher, first.pid);
    await_end(&first);
    assert_int_not_equal(run_step(node).pid, 0);
}

CASE(an_idle_shepherd_keeps_nothing_of_its_step, node)
{
    char target[64] = "";
    pid_t pid = run_step(node).pid;
    _cleanup_free_ char *cwd = xasprintf("/proc/%d/cwd", (int)pid);
    _cleanup_free_ char *cmdline = xasprintf("/proc/%d/cmdline", (int)pid);
    _cleanup_buffer_ struct buffer words = { 0 };
    assert_int_equal(count_entries(pid, "fd"), 4); // the standard ones, and the agent's
    assert_int_equal(readlink(cwd, target, sizeof(target) - 1), 1);
    assert_string_equal(target, "/");
    assert_int_equal(file_read(AT_FDCWD, cmdline, 8192, &words), 0);
    assert_string_equal(buffer_text(&words) + sizeof("mgpu-shepherd"), "--idle");
}

CASE(an_idle_shepherd_that_was_killed_is_replaced, node)
{
    pid_t first = run_step(node).pid;
    _cleanup_close_ int pidfd = open_process(first);
    assert_int_equal(kill(first, SIGKILL), 0);
    await_gone(pidfd);
    pid_t second = run_step(node).pid;
    assert_int_not_equal(second, first);
    assert_int_equal(run_step(node).pid, second);
}

CASE(idle_shepherds_leave_with_the_agent_and_busy_ones_stay, node)
{
    _cleanup_close_ int idle = open_process(run_step(node).pid);
    launcher_close(take_ptr(node->launcher));
    struct pollfd source = { idle, POLLIN, 0 };
    assert_int_equal(poll(&source, 1, 0), 1); // waited for, because its cgroup is to be removed
    open_launcher(node);
    strings_clear(&node->job.command);
    strings_add(&node->job.command, "/bin/sleep");
    strings_add(&node->job.command, "1000");
    struct launcher_process process = stage_and_start(node);
    _cleanup_close_ int busy = open_process(process.pid);
    await_hint(node, "42.1.0.0 started");
    launcher_close(take_ptr(node->launcher));
    open_launcher(node);
    assert_int_equal(launcher_command(node->launcher, &node->id, SIGKILL, 0), 0);
    await_hint(node, "42.1.0.0 exit");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
    await_gone(busy); // it has no agent any more
}

CASE(a_step_with_a_terminal_takes_its_shepherd_along, node)
{
    node->job.tty = true;
    struct launcher_process process = stage_and_start(node);
    _cleanup_close_ int pidfd = open_process(process.pid);
    await_hint(node, "42.1.0.0 exit");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
    await_gone(pidfd);
}

CASE(a_shepherd_that_is_not_needed_leaves, node)
{
    _cleanup_close_ int pidfd = open_process(run_step(node).pid);
    await_gone(pidfd);
    (void)run_step(node);
}

CASE(a_shepherd_does_not_serve_for_ever, node)
{
    pid_t first = run_step(node).pid, last = first;
    for (int round = 0; round < 100; round++)
        last = run_step(node).pid;
    assert_int_not_equal(last, first);
}

CASE(a_shepherd_shows_its_step, node)
{
    strings_clear(&node->job.command);
    strings_add(&node->job.command, "/bin/sleep");
    strings_add(&node->job.command, "1000");
    struct launcher_process process = stage_and_start(node);
    await_hint(node, "42.1.0.0 started");
    _cleanup_free_ char *shown = xasprintf("%s/spool/42.1.0.0", node->run_dir);
    _cleanup_buffer_ struct buffer words = { 0 };
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)process.pid);
    assert_int_equal(file_read(AT_FDCWD, path, 8192, &words), 0);
    assert_string_equal(buffer_text(&words), "mgpu-shepherd");
    assert_string_equal(buffer_text(&words) + sizeof("mgpu-shepherd"), shown);
    assert_int_equal(launcher_command(node->launcher, &node->id, SIGKILL, 0), 0);
    await_hint(node, "42.1.0.0 exit");
    assert_int_equal(launcher_discard(node->launcher, &node->id), 0);
    await_end(&process);
}
