/* SPDX-License-Identifier: MIT */
#include "agent/shares.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/message.h"

static void find_dmem(struct share_ways *ways, const struct limits *limits)
{
    ways->regions = limits_regions(limits);
    ways->is_available[SHARE_DMEM] = limits_how(limits, LIMIT_DMEM) != NULL && ways->regions != NULL;
    if (limits_how(limits, LIMIT_DMEM) == NULL)
        share_ways_refuse(ways, SHARE_DMEM, limits_why(limits, LIMIT_DMEM)->message);
    else if (ways->regions == NULL)
        share_ways_refuse(ways, SHARE_DMEM, "no driver charges the memory of its devices to cgroups");
}

/* The watch of the memory needs only what every driver that reports processes provides. */
void shares_find(struct shares *shares, const struct limits *limits)
{
    shares->ways.is_available[SHARE_TIME] = true;
    shares->ways.is_available[SHARE_MPS] = true;
    find_dmem(&shares->ways, limits);
}

void shares_open_mps(struct shares *shares, struct event_base *base, const struct agent_options *options,
    mps_ready_fn *on_ready, void *arg)
{
    _cleanup_free_ char *program = mps_find(options->mps_control);
    if (program == NULL) {
        share_ways_refuse(&shares->ways, SHARE_MPS, "there is no " MPS_CONTROL);
        return;
    }
    const struct mps_options mps = { .program = program,
        .run_dir = options->run_dir,
        .proc = "/proc",
        .is_root = geteuid() == 0,
        .answer_ms = MPS_ANSWER_MS };
    shares->mps = mps_new(base, &mps, on_ready, arg);
}

uint32_t shares_bits(const struct shares *shares)
{
    uint32_t bits = NODE_SHARES_KNOWN;
    for (enum share_kind kind = SHARE_TIME; kind < SHARE_AUTO; kind++)
        bits |= shares->ways.is_available[kind] ? UINT32_C(1) << kind : 0;
    return bits;
}

/* The servers of MPS are not external processes. */
static void hide_servers(const struct mps *mps, struct record_list *gpus)
{
    struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu_process *processes = states[i].processes.items;
        size_t kept = 0;
        for (size_t k = 0; k < states[i].processes.count; k++) {
            if (mps_is_server(mps, (pid_t)processes[k].pid, processes[k].start))
                record_clear(&gpu_process_record, &processes[k]);
            else
                processes[kept++] = processes[k];
        }
        states[i].processes.count = kept;
        if (kept == 0) {
            free(states[i].processes.items);
            states[i].processes.items = NULL;
        }
    }
}

void shares_report(struct shares *shares, struct record_list *gpus)
{
    if (shares->mps == NULL)
        return;
    mps_check_servers(shares->mps);
    hide_servers(shares->mps, gpus);
}
