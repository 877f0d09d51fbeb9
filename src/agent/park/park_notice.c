/* SPDX-License-Identifier: MIT */
#include "agent/park/park_notice.h"

#include "agent/launch/launcher.h"
#include "agent/launch/notice.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/spool.h"
#include "job/launch.h"

/* True if it was never parked: it started early, and gets its GPUs for the first time. */
static bool is_grant(const struct launcher *launcher, const struct spool_id *id)
{
    struct launch_park entry = { 0 };
    _cleanup_close_ int dirfd = launcher_open_entry(launcher, id);
    if (dirfd < 0 || file_read_record(dirfd, SPOOL_PARK, &launch_park_record, &entry, NULL) < 0)
        return false;
    bool is_grant = entry.granted_ms != 0;
    record_clear(&launch_park_record, &entry);
    return is_grant;
}

void park_notice_write(
    const struct launcher *launcher, const struct message_park *order, enum park_outcome outcome)
{
    if (outcome != PARK_DONE || order->action == PARK_CHECK)
        return;
    if (order->action == PARK_SAVE)
        (void)notice_add(
            launcher, &order->id, "park", "its GPU memory is in host memory, and its processes are stopped");
    else if (!is_grant(launcher, &order->id))
        (void)notice_add(launcher, &order->id, "unpark",
            "its GPU memory is on its GPUs again, and its processes continue");
}
