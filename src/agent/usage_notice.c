/* SPDX-License-Identifier: MIT */
#include "agent/usage_notice.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/progress.h"
#include "base/spool.h"

bool usage_notice_read(int dirfd, struct job_usage *usage)
{
    struct spool_notice notice;
    if (!spool_read_notice(dirfd, &notice))
        return false;
    if (notice.has_progress != 0 && notice.progress_ppm <= PROGRESS_WHOLE) {
        usage->valid |= USAGE_PROGRESS;
        usage->progress_ppm = notice.progress_ppm;
    }
    free(usage->status);
    usage->status = notice.status[0] != '\0' ? xstrdup(notice.status) : NULL;
    usage->checkpointed_ms = notice.checkpointed_ms;
    return true;
}
