/* SPDX-License-Identifier: MIT */
/*
 * The agent starts no job before a first report, so one is passed on in time even if the driver takes long to
 * open its GPUs. Later reports replace it.
 */
#include "agent/gpu/last_report.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"

void gpu_last_report_pass(struct gpu_last_report *last)
{
    (void)evtimer_del(last->timeout);
    struct gpu_report whole = last->report;
    whole.gpus = *gpu_roster_gpus(last->roster);
    last->has_report = true;
    last->on_report(last->arg, &whole);
}

void gpu_last_report_take(struct gpu_last_report *last, struct gpu_report *fresh)
{
    struct record_list gpus = fresh->gpus;
    fresh->gpus = (struct record_list){ 0 };
    record_clear(&gpu_report_record, &last->report);
    last->report = *fresh;
    *fresh = (struct gpu_report){ .gpus = gpus };
}

/* The backend of the most frequent vendor, if the requested driver is not known yet. */
static const char *backend_of(const struct gpu_spec *spec)
{
    return gpu_vendor_of(spec->kind == GPU_SPEC_SIM      ? (uint32_t)GPU_VENDOR_SIMULATED
                         : spec->kind == GPU_SPEC_VENDOR ? spec->vendor
                                                         : (uint32_t)GPU_VENDOR_NVIDIA)
        ->backend;
}

/* "nvidia-smi or rocm-smi": the programs of all vendors, or that of the vendor that was found. */
static void add_monitors(const char *backend, struct buffer *text)
{
    const struct gpu_vendor *known = gpu_vendor_by_backend(backend);
    const char *before = "";
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        const struct gpu_vendor *vendor = &gpu_vendors[i];
        if (vendor->monitor == NULL || (known != NULL && known->monitor != NULL && known != vendor))
            continue;
        buffer_printf(text, "%s%s", before, vendor->monitor);
        before = " or ";
    }
}

void gpu_last_report_pass_lost(struct gpu_last_report *last, const char *why)
{
    struct gpu_report *report = &last->report;
    char *text = xstrdup(why); // `why` may belong to the last report
    gpu_roster_lose_all(last->roster, text);
    if (report->backend == NULL)
        report->backend = xstrdup(backend_of(last->spec));
    report->is_on = 0;
    report->is_sample = 1;
    free(report->text);
    report->text = text;
    if (report->fix == NULL) {
        _cleanup_buffer_ struct buffer fix = { 0 };
        buffer_append_text(&fix, "check ");
        add_monitors(gpu_roster_backend(last->roster), &fix);
        buffer_append_text(&fix, "; a reboot may be required");
        report->fix = buffer_take(&fix);
    }
    gpu_last_report_pass(last);
}

void gpu_last_report_pass_released(struct gpu_last_report *last)
{
    struct gpu_report *report = &last->report;
    report->is_sample = 1;
    if (!gpu_roster_is_all_released(last->roster)) {
        if (last->has_report)
            gpu_last_report_pass(last);
        return;
    }
    if (report->backend == NULL)
        report->backend = xstrdup(gpu_roster_backend(last->roster));
    free(report->text);
    report->text = xstrdup("all GPUs are released; mgpu gpu resume reopens them");
    free(report->fix);
    report->fix = NULL;
    report->is_on = 1;
    gpu_last_report_pass(last);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct gpu_last_report *last = arg;
    free(last->report.fix);
    last->report.fix = xstrdup("it may still be initializing its GPUs, which takes seconds per GPU without "
                               "nvidia-persistenced; check nvidia-smi");
    gpu_last_report_pass_lost(last, "the GPU driver does not respond yet");
}

void gpu_last_report_init(struct gpu_last_report *last, struct event_base *base, struct gpu_roster *roster,
    const struct gpu_spec *spec, int64_t notice_ms, gpu_helper_fn *on_report, void *arg)
{
    const struct timeval timeout = { notice_ms / 1000, notice_ms % 1000 * 1000 };
    *last = (struct gpu_last_report){ .roster = roster, .spec = spec, .on_report = on_report, .arg = arg };
    last->timeout = evtimer_new(base, on_timeout, last);
    (void)evtimer_add(last->timeout, &timeout);
}

void gpu_last_report_clear(struct gpu_last_report *last)
{
    event_free(last->timeout);
    record_clear(&gpu_report_record, &last->report);
}
