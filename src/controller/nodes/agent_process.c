/* SPDX-License-Identifier: MIT */
/*
 * The keeper has the other end of a socketpair and sends over it (SCM_RIGHTS) one end of a new link for every
 * worker it starts. The worker, which has root, can therefore be restarted without root in mgpud, and a
 * partial frame of a dead worker is never continued by the next. If the keeper itself dies, agents can no
 * longer be started, and mgpud exits with EX_TEMPFAIL, so that its service manager restarts both. Jobs are
 * not affected.
 */
#include "controller/nodes/agent_process.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/detach.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "controller/controller.h"
#include "controller/nodes/links.h"

struct agent_process {
    struct controller *controller;
    int fd;
    struct event *readable;
};

static void build_command(const struct controller_options *options, int keep_fd, struct strings *command)
{
    strings_take(command, xasprintf("%s/mgpu-agent", options->program_dir));
    strings_take(command, xasprintf("--keep=%d", keep_fd));
    strings_take(command, xasprintf("--run-dir=%s", options->run_dir));
    strings_take(command, xasprintf("--state-dir=%s", options->state_dir));
    strings_take(command, xasprintf("--gpus=%s", options->gpus));
    if (options->nvml_library != NULL)
        strings_take(command, xasprintf("--nvml-library=%s", options->nvml_library));
    if (options->cuda_library != NULL)
        strings_take(command, xasprintf("--cuda-library=%s", options->cuda_library));
    if (options->rocm_library != NULL)
        strings_take(command, xasprintf("--rocm-library=%s", options->rocm_library));
    if (options->mps_control != NULL)
        strings_take(command, xasprintf("--mps-control=%s", options->mps_control));
    if (options->device_dir != NULL)
        strings_take(command, xasprintf("--device-dir=%s", options->device_dir));
    strings_take(command, xasprintf("--imex-channels=%s", options->is_imex_on ? "on" : "off"));
    if (options->gpu_scrub_ms > 0)
        strings_take(command, xasprintf("--gpu-scrub=%lldms", (long long)options->gpu_scrub_ms));
    if (options->gpu_test_every_ms > 0)
        strings_take(command, xasprintf("--gpu-test-every=%lldms", (long long)options->gpu_test_every_ms));
    strings_take(command, xasprintf("--sysfs-root=%s", options->sysfs_root));
    strings_take(command, xasprintf("--sendmail=%s", options->sendmail));
    strings_take(command, xasprintf("--node=%s", options->node));
    strings_take(command, xasprintf("--log-dir=%s", options->log_dir));
    strings_take(command, xasprintf("--shepherd=%s/mgpu-shepherd", options->program_dir));
    if (options->cgroup != NULL)
        strings_take(command, xasprintf("--cgroup=%s", options->cgroup));
    strings_take(command, xasprintf("--pids-max=%s", options->pids_max));
    if (options->job_limits != NULL)
        strings_take(command, xasprintf("--job-limits=%s", options->job_limits));
    strings_take(command, xasprintf("--min-uid=%s", options->min_uid));
    if (options->allow_root_jobs)
        strings_add(command, "--allow-root-jobs");
    if (options->adopts_any_user)
        strings_add(command, "--adopt-any-user");
    if (options->has_no_new_privs)
        strings_add(command, "--no-new-privileges");
    if (options->is_verbose)
        strings_add(command, "--verbose");
}

int agent_process_start(
    struct controller *controller, int log_fd, struct agent_process **ret, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(err, -errno, "cannot create a socket for the agent");
    _cleanup_close_ int ours = pair[0], theirs = pair[1];
    _cleanup_strings_ struct strings command = { 0 };
    build_command(&controller->options, theirs, &command);
    if (access(command.items[0], X_OK) < 0)
        return error_set_errno(err, -errno, "cannot execute %s", command.items[0]);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot start %s", command.items[0]);
    if (pid == 0) {
        (void)fcntl(theirs, F_SETFD, 0);
        (void)setsid();
        if (log_fd >= 0)
            detach_streams(log_fd);
        (void)execv(command.items[0], command.items);
        _exit(127);
    }
    struct agent_process *agent = xcalloc(1, sizeof(*agent));
    *agent = (struct agent_process){ .controller = controller, .fd = take_fd(&ours) };
    *ret = agent;
    return 0;
}

static void on_keeper_gone(struct agent_process *agent)
{
    (void)event_del(agent->readable);
    log_error("the keeper of mgpu-agent has died; mgpud exits to restart both (jobs continue)");
    agent->controller->exit_status = EX_TEMPFAIL;
    (void)event_base_loopbreak(agent->controller->loop);
}

static void on_readable(evutil_socket_t fd, short events, void *arg)
{
    struct agent_process *agent = arg;
    char byte;
    int link = -1;
    int r = descriptor_receive(fd, &byte, sizeof(byte), &link);
    if (r == 0 || (r < 0 && r != -EAGAIN))
        on_keeper_gone(agent);
    if (r <= 0 || link < 0)
        return;
    links_adopt(agent->controller->links, link);
}

int agent_process_watch(struct agent_process *agent, struct error *err)
{
    if (agent == NULL)
        return 0;
    agent->readable = event_new(agent->controller->loop, agent->fd, EV_READ | EV_PERSIST, on_readable, agent);
    if (agent->readable == NULL || event_add(agent->readable, NULL) < 0)
        return error_set(err, -ENOMEM, "cannot watch the agent's socket");
    return 0;
}

void agent_process_free(struct agent_process *agent)
{
    if (agent == NULL)
        return;
    if (agent->readable != NULL)
        event_free(agent->readable);
    closep(&agent->fd);
    free(agent);
}
