/* SPDX-License-Identifier: MIT */
#include "agent/usage/reported.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/progress.h"
#include "base/spool.h"

bool usage_reported_read(int dirfd, struct job_usage *usage)
{
    struct spool_said said;
    if (!spool_read_said(dirfd, &said))
        return false;
    if (said.has_progress != 0 && said.progress_ppm <= PROGRESS_WHOLE) {
        usage->valid |= USAGE_PROGRESS;
        usage->progress_ppm = said.progress_ppm;
    }
    free(usage->status);
    usage->status = said.status[0] != '\0' ? xstrdup(said.status) : NULL;
    usage->checkpointed_ms = said.checkpointed_ms;
    return true;
}
