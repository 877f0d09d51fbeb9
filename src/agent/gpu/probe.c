/* SPDX-License-Identifier: MIT */
/*
 * Runs in a separate process (gpu/helper.c), so any call here may hang or crash. "auto" tries the real
 * backends in the order of a table and falls back to none, with the reason.
 */
#include "agent/gpu/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/gpu/gpu.h"
#include "agent/gpu/place.h"
#include "agent/gpu/pollers.h"
#include "agent/gpu/report.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"

#define REMARK_SIZE     256U
#define REPORT_TEXT_MAX 511U // bytes

#define BACKEND(id, its_number, word, ...) { its_number, &gpu_##word },
static const struct {
    uint32_t vendor;
    const struct gpu_backend *backend;
} automatic[] = { GPU_VENDORS_REAL(BACKEND) };
#define AUTOMATIC (sizeof(automatic) / sizeof(automatic[0]))

struct probe {
    const struct gpu_backend *backend;
    const struct gpu_spec *spec;
    struct gpu_progress *page;
    void *state;
    struct gpu_pollers *turns; // NULL until the first report
    bool has_found;            // and reports how many GPUs it `found`
    size_t found;
    struct gpu_report report; // the descriptions stay, the values are refreshed
};

/* -ENODEV from every backend means a machine without GPUs; any other failure means a faulty driver. The first
 * backend's reason is kept, because the drivers of the others are rarer. */
static int open_automatic(struct probe *probe, struct error *err)
{
    for (size_t i = 0; i < AUTOMATIC; i++) {
        struct error why = { 0 };
        probe->backend = automatic[i].backend;
        int r = probe->backend->open(probe->spec, probe->page, &probe->state, &why);
        if (r == 0) {
            *err = (struct error){ 0 };
            return 0;
        }
        if (i == 0 || r != -ENODEV)
            *err = why;
        if (r != -ENODEV)
            return r;
    }
    probe->backend = &gpu_none;
    return gpu_none.open(probe->spec, probe->page, &probe->state, NULL);
}

static const struct gpu_backend *choose_backend(const struct gpu_spec *spec)
{
    for (size_t i = 0; spec->kind == GPU_SPEC_VENDOR && i < AUTOMATIC; i++)
        if (automatic[i].vendor == spec->vendor)
            return automatic[i].backend;
    return spec->kind == GPU_SPEC_SIM ? &gpu_sim : &gpu_none;
}

static int open_backend(struct probe *probe, struct error *err)
{
    if (probe->spec->kind == GPU_SPEC_AUTO)
        return open_automatic(probe, err);
    probe->backend = choose_backend(probe->spec);
    return probe->backend->open(probe->spec, probe->page, &probe->state, err);
}

static void describe_gpus(struct probe *probe)
{
    size_t count = probe->backend->count(probe->state);
    struct gpu_state *gpus = xcalloc(count + 1, sizeof(*gpus));
    for (size_t i = 0; i < count; i++) {
        gpu_progress_enter(probe->page, probe->backend->key(probe->state, i));
        probe->backend->describe(probe->state, i, &gpus[i]);
    }
    if (probe->backend != &gpu_sim) // the simulation invents its places
        gpu_place_find(gpu_spec_sysfs(probe->spec), gpus, count);
    probe->report.gpus = (struct record_list){ gpus, count };
}

/* Unusable GPUs, with the reason of the first one. */
static void add_refusals(const struct probe *probe, struct buffer *text)
{
    const struct gpu_state *gpus = probe->report.gpus.items;
    const struct gpu_state *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < probe->report.gpus.count; i++) {
        if (gpus[i].refusal == NULL)
            continue;
        first = first == NULL ? &gpus[i] : first;
        count++;
    }
    if (count > 0)
        buffer_printf(text, "; %zu %s not offered: %s", count, count == 1 ? "is" : "are", first->refusal);
}

static void add_released(const struct gpu_progress *page, struct buffer *text)
{
    size_t count = 0;
    for (uint32_t i = 0; page != NULL && i < page->n_known; i++)
        count += page->known[i].is_released;
    if (count > 0)
        buffer_printf(text, "; %zu released", count);
}

static void report_found(struct probe *probe)
{
    char remark[REMARK_SIZE] = "";
    if (probe->backend->remark != NULL)
        probe->backend->remark(probe->state, remark, sizeof(remark));
    _cleanup_buffer_ struct buffer text = { 0 };
    buffer_printf(&text, "%zu GPU%s found by %s%s%s", probe->found, probe->found == 1 ? "" : "s",
        probe->report.backend, *remark != '\0' ? "; " : "", remark);
    add_refusals(probe, &text);
    add_released(probe->page, &text);
    free(probe->report.text);
    probe->report.text = xstrndup(buffer_text(&text), REPORT_TEXT_MAX);
}

static char *read_driver(const struct probe *probe)
{
    char text[NODE_DRIVER_MAX + 1] = "";
    if (probe->backend->driver != NULL)
        probe->backend->driver(probe->state, text, sizeof(text));
    return *text != '\0' ? text_escape_fit(text, NODE_DRIVER_MAX) : NULL;
}

/* Excluded GPUs are still part of the machine. */
static void describe(struct probe *probe, const struct error *err)
{
    struct gpu_report *report = &probe->report;
    describe_gpus(probe);
    size_t count = report->gpus.count + (probe->page != NULL ? probe->page->n_left_out : 0);
    report->backend = xstrdup(probe->backend->name);
    report->driver = read_driver(probe);
    report->is_on = probe->backend != &gpu_none;
    report->is_final = probe->backend == &gpu_none;
    if (err->code != 0)
        report->text = xstrdup(err->message);
    else if (probe->spec->kind == GPU_SPEC_NONE)
        report->text = xstrdup("no GPUs are offered (--gpus none)");
    else
        probe->has_found = true;
    probe->found = count;
    report->fix = err->code != 0 && err->hint[0] != '\0' ? xstrdup(err->hint) : NULL;
}

static int write_report(int fd, const struct gpu_report *report)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&gpu_report_record, report, &bytes);
    return write_all(fd, bytes.bytes, bytes.length);
}

/* Reads one GPU after the other, so that a GPU that hangs is identified to the agent before anything else is
 * known. */
static void read_in_order(struct probe *probe, bool is_full)
{
    struct gpu_state *gpus = probe->report.gpus.items;
    const struct gpu_backend *backend = probe->backend;
    void (*read_one)(void *, size_t, struct gpu_state *) =
        is_full || backend->look == NULL ? backend->sample : backend->look;
    for (size_t i = 0; i < probe->report.gpus.count; i++) {
        uint64_t asked = gpu_progress_wanted(probe->page, i);
        gpu_progress_enter(probe->page, backend->key(probe->state, i));
        read_one(probe->state, i, &gpus[i]);
        gpus[i].answers = asked;
    }
    gpu_progress_enter(probe->page, NULL);
}

enum wake { WAKE_PERIOD, WAKE_ASKED, WAKE_ENDED, WAKE_ALONE };

static int report(struct probe *probe, int fd, bool is_sample)
{
    probe->report.is_sample = is_sample;
    probe->report.is_outdated =
        probe->backend->is_outdated != NULL && probe->backend->is_outdated(probe->state);
    gpu_processes_share(&probe->report.gpus);
    return write_report(fd, &probe->report);
}

/* A full sample once per period; in between, on request, only what shows whether GPUs are clean. Turns that
 * end after their report are reported at once if a caller waits, otherwise with the next report. */
static int sample(struct probe *probe, int fd, enum wake wake)
{
    bool is_full = wake == WAKE_PERIOD, is_answer = true;
    if (probe->turns != NULL)
        is_answer = gpu_pollers_read(probe->turns, is_full, &probe->report.gpus);
    else
        read_in_order(probe, is_full);
    if (is_full && probe->has_found)
        report_found(probe);
    return is_full || is_answer ? report(probe, fd, is_full) : 0;
}

/* Waits for the next period, a requested check (the bytes only wake it), the end of a turn, or the end of the
 * reader. */
static enum wake wait_period(struct probe *probe, int fd, int64_t until_ms)
{
    char asked[256];
    struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
        { .fd = gpu_pollers_fd(probe->turns), .events = POLLIN } };
    int ready = 0;
    int64_t left = until_ms - clock_boot_ms();
    do {
        ready = poll(fds, 2, left > 0 ? (int)left : 0);
        left = until_ms - clock_boot_ms();
    } while (ready <= 0 && left > 0);
    if (ready <= 0)
        return WAKE_PERIOD;
    if (fds[0].revents == 0)
        return left > 0 ? WAKE_ENDED : WAKE_PERIOD;
    ssize_t n = (fds[0].revents & POLLIN) != 0 ? read(fd, asked, sizeof(asked)) : 0;
    if (n <= 0)
        return WAKE_ALONE;
    return left > 0 ? WAKE_ASKED : WAKE_PERIOD; // the full sample includes the answer
}

/* The driver does not work: reported once, and retried by another process. */
static int report_failure(struct probe *probe, int fd, const struct error *err)
{
    probe->report.backend = xstrdup(probe->backend->name);
    probe->report.text = xstrdup(err->message);
    probe->report.fix = xstrdup(err->hint);
    probe->report.is_sample = 1;
    return write_report(fd, &probe->report);
}

int gpu_probe_run(
    int fd, const struct gpu_spec *spec, struct gpu_progress *page, int64_t period_ms, int64_t silent_ms)
{
    struct probe probe = { .spec = spec, .page = page };
    struct error err = { 0 };
    int r = open_backend(&probe, &err);
    if (r < 0) {
        r = report_failure(&probe, fd, &err);
    } else {
        int64_t next_ms = clock_boot_ms();
        enum wake wake = WAKE_PERIOD;
        gpu_progress_set_open(page);
        describe(&probe, &err);
        do {
            r = sample(&probe, fd, wake);
            if (probe.turns == NULL && !probe.report.is_final)
                probe.turns =
                    gpu_pollers_new(probe.backend, probe.state, page, &probe.report.gpus, silent_ms);
            next_ms += wake == WAKE_PERIOD ? period_ms : 0;
        } while (r == 0 && !probe.report.is_final && (wake = wait_period(&probe, fd, next_ms)) != WAKE_ALONE);
        if (!gpu_pollers_end(probe.turns))
            return EXIT_FAILURE; // threads hang in memory that would be freed
        probe.backend->close(probe.state);
    }
    record_clear(&gpu_report_record, &probe.report);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
