/* SPDX-License-Identifier: MIT */
/* The pipe into which a job says how far it is ($MGPU_NOTIFY), and the spool file that has it for the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/launch.h"
#include "shepherd/notice.h"

struct notify {
    int pipe_fd;           // both ends, so that it is never without a reader; -1: the step has none
    int file_fd;           // the spool file "notice", or -1
    int64_t rest_until_ms; // boot clock: the pipe is not looked at before
    struct notice notice;
};

void notify_init(struct notify *notify);
void notify_close(struct notify *notify);

/* Makes the pipe that the spec names, and gives it to the job's user; 0 when it names none. Before the gate.
 */
int notify_make(struct notify *notify, const struct launch_spec *spec, int spool_fd);

/* Opens both again, with what was said before. Nothing is lost when that fails but what comes later. */
void notify_adopt(struct notify *notify, const struct launch_spec *spec, int spool_fd);

/* For poll(2): the descriptor to look at, or -1 while it rests; and for how long at most, or -1. */
int notify_source(const struct notify *notify, int64_t boot_ms);
int notify_wait_ms(const struct notify *notify, int64_t boot_ms);

/* Takes what is in the pipe, as much as is fair. True when CHECKPOINTED was there. */
bool notify_read(struct notify *notify, int64_t boot_ms);

/* Takes all that is in the pipe now, so that what comes later is known to be said later. */
bool notify_drain(struct notify *notify);

/* It is told to save its work, or need not any more: whoever adopts the step knows it too. */
void notify_tell(struct notify *notify, enum spool_told told);
enum spool_told notify_told(const struct notify *notify);

/* The step is over. True when CHECKPOINTED was among its last words. */
bool notify_finish(struct notify *notify);
