/* SPDX-License-Identifier: MIT */
#include "agent/usage/reported.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/progress.h"
#include "base/spool.h"

bool usage_reported_read(int dirfd, struct job_usage *usage)
{
    struct spool_report report;
    if (!spool_read_report(dirfd, &report))
        return false;
    if (report.has_progress != 0 && report.progress_ppm <= PROGRESS_WHOLE) {
        usage->valid |= USAGE_PROGRESS;
        usage->progress_ppm = report.progress_ppm;
    }
    free(usage->status);
    usage->status = report.status[0] != '\0' ? xstrdup(report.status) : NULL;
    usage->checkpointed_ms = report.checkpointed_ms;
    return true;
}
