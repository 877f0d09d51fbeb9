/* SPDX-License-Identifier: MIT */
/* The log of the latest attempt that was requeued. The record of a job has that of its current attempt only,
 * and who follows a job may ask for the log of a short attempt when the next one has begun already. */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/earlier_log.h"
#include "controller/core/entry.h"
#include "controller/core/tables.h"

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job_event *event = news->event;
    if (event->type != EVENT_REQUEUED || event->log_path == NULL || news->node == NULL)
        return;
    struct earlier_log *log = &core_make_extra(entry)->earlier_log;
    free(log->path);
    free(log->node);
    *log = (struct earlier_log){ event->attempt, xstrdup(event->log_path), xstrdup(news->node) };
}

const struct earlier_log *core_earlier_log(const struct core *core, uint64_t job, uint32_t attempt)
{
    const struct core_entry *entry = core_find(core, job);
    const struct earlier_log *log = entry != NULL ? &core_extra(entry)->earlier_log : NULL;
    return log != NULL && log->attempt != 0 && log->attempt == attempt ? log : NULL;
}

const struct core_concern core_concern_earlier_log = {
    .name = "earlier_log",
    .event = on_event,
};
