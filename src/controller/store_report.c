/* SPDX-License-Identifier: MIT */
#include "controller/store_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/slow_work.h"
#include "store/store.h"

static void print_finding(void *work, const char *sentence)
{
    slow_work_hide(work);
    (void)printf("%s\n", sentence);
    (void)fflush(stdout);
}

static void report_progress(void *work, const char *what, uint64_t done, uint64_t total)
{
    slow_work_step(work, what, done, total);
}

int store_report(const struct controller_options *options, struct error *err)
{
    _cleanup_free_ char *dir = xasprintf("%s/store", options->state_dir);
    struct slow_work work;
    const struct store_progress progress = { report_progress, &work };
    slow_work_begin(&work, SLOW_WORK_PERSON, NULL);
    int findings = store_fsck(dir, print_finding, &work, &progress, err);
    slow_work_end(&work);
    if (findings == 0)
        (void)printf("%s: the tables match the events\n", dir);
    return findings;
}
