/* SPDX-License-Identifier: MIT */
/*
 * Runs in a process of its own (gpu_helper.c), so any call here may hang or crash. "auto" tries the real
 * backends in the order of a table and falls to none, saying why.
 */
#include "agent/gpu_probe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/gpu.h"
#include "agent/gpu_place.h"
#include "agent/gpu_report.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"

static const struct gpu_backend *const automatic[] = { &gpu_nvml, NULL };

struct probe {
    const struct gpu_backend *backend;
    void *state;
    struct gpu_report report; // the descriptions stay, the values are refreshed
};

/* -ENODEV from every backend means a machine without GPUs; any other failure means a sick driver. */
static int open_automatic(struct probe *probe, const struct gpu_spec *spec, struct error *err)
{
    for (size_t i = 0; automatic[i] != NULL; i++) {
        probe->backend = automatic[i];
        int r = probe->backend->open(spec, &probe->state, err);
        if (r != -ENODEV)
            return r;
    }
    probe->backend = &gpu_none;
    return gpu_none.open(spec, &probe->state, NULL);
}

static int open_backend(struct probe *probe, const struct gpu_spec *spec, struct error *err)
{
    if (spec->kind == GPU_SPEC_AUTO)
        return open_automatic(probe, spec, err);
    probe->backend = spec->kind == GPU_SPEC_SIM ? &gpu_sim : &gpu_none;
    return probe->backend->open(spec, &probe->state, err);
}

static void describe(struct probe *probe, const struct gpu_spec *spec, const struct error *err)
{
    struct gpu_report *report = &probe->report;
    size_t count = probe->backend->count(probe->state);
    struct gpu_state *gpus = xcalloc(count + 1, sizeof(*gpus));
    for (size_t i = 0; i < count; i++)
        probe->backend->describe(probe->state, i, &gpus[i]);
    if (probe->backend != &gpu_sim) // which makes its places up
        gpu_place_find("/sys", gpus, count);
    report->gpus = (struct record_list){ gpus, count };
    report->backend = xstrdup(probe->backend->name);
    report->is_on = count > 0;
    report->is_final = probe->backend == &gpu_none;
    if (err->code != 0)
        report->text = xstrdup(err->message);
    else if (spec->kind == GPU_SPEC_NONE)
        report->text = xstrdup("no GPUs are offered (--gpus none)");
    else
        report->text = xasprintf("%zu GPU%s found by %s", count, count == 1 ? "" : "s", report->backend);
    report->fix = err->code != 0 && err->hint[0] != '\0' ? xstrdup(err->hint) : NULL;
}

static int write_report(int fd, const struct gpu_report *report)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&gpu_report_record, report, &bytes);
    return write_all(fd, bytes.bytes, bytes.length);
}

/* In full once in a period; in between, when asked, only what tells whether GPUs are clean. */
static int sample(struct probe *probe, int fd, bool is_full)
{
    struct gpu_state *gpus = probe->report.gpus.items;
    const struct gpu_backend *backend = probe->backend;
    void (*read_one)(void *, size_t, struct gpu_state *) =
        is_full || backend->look == NULL ? backend->sample : backend->look;
    for (size_t i = 0; i < probe->report.gpus.count; i++)
        read_one(probe->state, i, &gpus[i]);
    probe->report.is_sample = is_full;
    gpu_processes_share(&probe->report.gpus);
    return write_report(fd, &probe->report);
}

enum wake { WAKE_PERIOD, WAKE_ASKED, WAKE_ALONE };

/* Waits for the next period, for somebody who asks (each byte is a look), or for the reader to go. */
static enum wake wait_period(struct probe *probe, int fd, int64_t until_ms)
{
    char asked[256];
    struct pollfd reader = { .fd = fd, .events = POLLIN };
    int ready = 0;
    int64_t left = until_ms - clock_boot_ms();
    do {
        ready = poll(&reader, 1, left > 0 ? (int)left : 0);
        left = until_ms - clock_boot_ms();
    } while (ready <= 0 && left > 0);
    if (ready <= 0)
        return WAKE_PERIOD;
    ssize_t n = (reader.revents & POLLIN) != 0 ? read(fd, asked, sizeof(asked)) : 0;
    if (n <= 0)
        return WAKE_ALONE;
    probe->report.answers += (uint64_t)n;
    return left > 0 ? WAKE_ASKED : WAKE_PERIOD; // the full sample answers too
}

int gpu_probe_run(int fd, const struct gpu_spec *spec, int64_t period_ms)
{
    struct probe probe = { 0 };
    struct error err = { 0 };
    int r = open_backend(&probe, spec, &err);
    if (r < 0) {
        probe.report.backend = xstrdup(probe.backend->name);
        probe.report.text = xstrdup(err.message);
        probe.report.fix = xstrdup(err.hint);
        r = write_report(fd, &probe.report);
    } else {
        int64_t next_ms = clock_boot_ms();
        enum wake wake = WAKE_PERIOD;
        describe(&probe, spec, &err);
        do {
            r = sample(&probe, fd, wake == WAKE_PERIOD);
            next_ms += wake == WAKE_PERIOD ? period_ms : 0;
        } while (r == 0 && !probe.report.is_final && (wake = wait_period(&probe, fd, next_ms)) != WAKE_ALONE);
        probe.backend->close(probe.state);
    }
    record_clear(&gpu_report_record, &probe.report);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
