/* SPDX-License-Identifier: MIT */
/*
 * I answers, because it lives exactly as long as the command. Processes of a job whose shepherd was killed,
 * or whose node temporarily has no agent, depend only on the grant and continue when it arrives. I has the
 * rights of the user. The grant is a byte in a pipe of the spool, which I opened before it became the user;
 * by then the device filter of the cgroup has been changed.
 *
 * Everything that the filter denies waits: the device nodes of all GPUs, and the control nodes of their
 * driver.
 */
#include "shepherd/gpu_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/node/open_gate.h"
#include "base/spool.h"

/* State of the step whose I this process is. */
static struct {
    struct open_gate gate;
    bool is_on;
    int grant_fd, asked_fd, child_fd;
} wait_state;

static bool is_denied(const void *arg, uint32_t major_number, uint32_t minor_number)
{
    const struct launch_spec *spec = arg;
    const struct device_rule *rules = spec->devices.items;
    for (size_t i = 0; i < spec->devices.count; i++)
        if (rules[i].major == major_number && rules[i].minor_first <= minor_number &&
            minor_number <= rules[i].minor_last)
            return rules[i].is_allowed == 0;
    return false;
}

int gpu_wait_enter(const struct launch_spec *spec)
{
    sigset_t child;
    if (!spec->is_early)
        return 0;
    /* Opened for writing too, so that the pipe never reports end of file. Opened before the gate, which would
     * intercept this open. */
    wait_state.grant_fd = open(SPOOL_GRANT, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    wait_state.asked_fd = open(SPOOL_ASKED, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    wait_state.child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (wait_state.grant_fd < 0 || wait_state.asked_fd < 0 || wait_state.child_fd < 0)
        return -errno;
    int r = open_gate_enter(&wait_state.gate, is_denied, spec);
    wait_state.is_on = r == 0;
    return r;
}

bool gpu_wait_is_on(void)
{
    return wait_state.is_on;
}

/* Does something the first time only. */
static void note_asked(void)
{
    struct spool_asked asked = { .magic = SPOOL_ASKED_MAGIC, .boot_ms = clock_boot_ms() };
    if (wait_state.asked_fd < 0)
        return;
    (void)!pwrite(wait_state.asked_fd, &asked, sizeof(asked), 0);
    closep(&wait_state.asked_fd);
}

static void take_grant(void)
{
    closep(&wait_state.grant_fd);
    closep(&wait_state.asked_fd);
    open_gate_open(&wait_state.gate);
}

void gpu_wait_serve(int timeout_ms)
{
    struct signalfd_siginfo child;
    struct pollfd sources[] = {
        { wait_state.gate.listener_fd, POLLIN, 0 },
        { wait_state.grant_fd, POLLIN, 0 },
        { wait_state.child_fd, POLLIN, 0 },
    };
    while (poll(sources, sizeof(sources) / sizeof(sources[0]), timeout_ms) > 0) {
        if (sources[1].revents != 0) {
            take_grant();
            sources[1].fd = -1;
        }
        if ((sources[0].revents & POLLIN) != 0 && open_gate_answer(&wait_state.gate))
            note_asked();
        else if (sources[0].revents != 0 && (sources[0].revents & POLLIN) == 0)
            sources[0].fd = -1; // no process is left behind the gate
        if (sources[2].revents != 0) {
            (void)!read(wait_state.child_fd, &child, sizeof(child));
            return;
        }
    }
}
