/* SPDX-License-Identifier: MIT */
/*
 * Nothing is decided here. The verdict is settled afterwards by link(2) as usual, so it does no harm if a
 * command of the agent arrives late, twice or never. Commands for the step are kept until it runs.
 */
#include "shepherd/ready.h"

#include <poll.h>
#include <sys/socket.h>

#include "shepherd/record.h"

bool ready_take_command(struct shepherd *shepherd)
{
    struct spool_command command;
    ssize_t n = recv(shepherd->ctl_fd, &command, sizeof(command), MSG_DONTWAIT | MSG_TRUNC);
    if (n != (ssize_t)sizeof(command))
        return false;
    if (command.magic == SPOOL_COMMAND_MAGIC)
        shepherd->early = command;
    /* The other ranks were sent this port, even if it was chosen by an earlier shepherd. */
    if (command.magic == SPOOL_GO_MAGIC && command.port != 0)
        shepherd->meeting.port = (uint32_t)command.port;
    return command.magic == SPOOL_GO_MAGIC;
}

/* False if the init has ended, or the agent has: its end of `agent_fd` (-1: none) is then closed. */
static bool await_go(struct shepherd *shepherd, int agent_fd)
{
    for (;;) {
        struct pollfd sources[] = { { shepherd->ctl_fd, POLLIN, 0 }, { shepherd->init_pidfd, POLLIN, 0 },
            { agent_fd, POLLRDHUP, 0 } };
        if (poll(sources, 3, -1) < 0)
            continue;
        if (sources[1].revents != 0)
            return false;
        if (sources[0].revents != 0 && ready_take_command(shepherd))
            return true;
        if (sources[2].revents != 0)
            return false;
    }
}

void ready_wait(struct shepherd *shepherd, struct init_status *ret_failure)
{
    if (shepherd->spec.meeting_port != 0)
        meeting_reserve(&shepherd->meeting, shepherd->spec.meeting_port);
    int r = record_write_started(shepherd, SPOOL_READY);
    if (r < 0) {
        ret_failure->step = STEP_STARTED;
        ret_failure->error = -r;
        return;
    }
    shepherd_hint(shepherd, "ready");
    if (!await_go(shepherd, -1)) {
        ret_failure->step = STEP_INIT;
        ret_failure->error = 0;
    }
}

bool ready_await_turn(struct shepherd *shepherd)
{
    const struct init_gate turn = { .magic = INIT_GATE_MAGIC };
    if (record_write_started(shepherd, SPOOL_READY) < 0)
        return false;
    shepherd_hint(shepherd, "ready");
    return await_go(shepherd, shepherd->agent_fd) && spool_verdict(shepherd->spool_fd) == VERDICT_NONE &&
           send(shepherd->channel_fd, &turn, sizeof(turn), MSG_NOSIGNAL) == (ssize_t)sizeof(turn);
}
