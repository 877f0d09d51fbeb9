/* SPDX-License-Identifier: MIT */
/*
 * The agent sends HEARTBEAT every few seconds, with its own time, and the controller returns that time. The
 * latest HEARTBEAT_ACK therefore identifies, on this node's clock alone, a moment after which the controller
 * still regarded this node as reachable: `acked_ms`. Delays and differing clocks only make this moment
 * earlier.
 *
 * Leases of attempts count from this moment. The agent only records until when an attempt may run; its
 * shepherd enforces it, so a stopped agent does not end a lease late. A lease that has expired is never
 * renewed: the controller may have given the job to another node, and reports that only after its WELCOME.
 *
 * A connection can appear alive for hours after the other machine has failed. If no message arrives for the
 * controller's timeout, it is closed and opened again. A HEARTBEAT_ACK may be behind thousands of other
 * messages, so any of them counts for this.
 */
#include "agent/core/heartbeat.h"

#include "base/log.h"

#define RENEWALS 4 // maximum number of renewals during a lease

void heartbeat_greet(struct agent_core *core, int64_t boot_ms)
{
    core->greeted_ms = boot_ms;
    core->beat_at = 0;
}

void heartbeat_begin(struct agent_core *core, int64_t boot_ms, const struct message_welcome *welcome)
{
    int64_t beat_ms = welcome->heartbeat_ms;
    core->heartbeat_ms = beat_ms <= 0 || beat_ms > HEARTBEAT_MIN_MS ? beat_ms : HEARTBEAT_MIN_MS;
    core->timeout_ms = welcome->timeout_ms;
    core->beat_at = beat_ms > 0 ? boot_ms + core->heartbeat_ms : 0;
    heartbeat_acknowledged(core, boot_ms, core->greeted_ms);
    if (core->beat_at != 0)
        agent_core_arm_by(core, core->beat_at);
}

/* A shepherd checks the lease only at the end it knows, so the file is written rarely, which shortens the
 * lease by a fraction. An attempt that is not staged yet has no file. */
static void renew(struct agent_core *core, struct attempt *attempt, int64_t boot_ms)
{
    int64_t until_ms = core->acked_ms + attempt->lease_ms;
    if (attempt->lease_ms == 0 || attempt->want == WANT_RELEASED || attempt->renewed_ms <= boot_ms ||
        until_ms - attempt->renewed_ms < attempt->lease_ms / RENEWALS)
        return;
    bool is_staging = attempt->launch != NULL;
    if (core->effects.renew(core->effects.arg, &attempt->id, until_ms) == 0 || is_staging)
        attempt->renewed_ms = until_ms;
}

void heartbeat_acknowledged(struct agent_core *core, int64_t boot_ms, int64_t sent_ms)
{
    if (sent_ms > boot_ms || sent_ms <= core->acked_ms)
        return;
    core->acked_ms = sent_ms;
    for (size_t i = 0; i < core->count; i++)
        renew(core, core->attempts[i], boot_ms);
}

void heartbeat_lease(const struct agent_core *core, struct attempt *attempt, int64_t lease_ms)
{
    if (attempt->lease_ms == lease_ms)
        return; // since PREPARE, or an earlier LAUNCH
    attempt->lease_ms = lease_ms;
    attempt->renewed_ms = core->acked_ms + lease_ms;
}

static bool is_silent(const struct agent_core *core, int64_t boot_ms)
{
    int64_t last_ms = core->last_contact_ms > core->acked_ms ? core->last_contact_ms : core->acked_ms;
    return core->timeout_ms > 0 && boot_ms - last_ms > core->timeout_ms + core->heartbeat_ms;
}

int64_t heartbeat_run(struct agent_core *core, int64_t boot_ms)
{
    if (core->link != LINK_OBEYING || core->beat_at == 0)
        return 0;
    if (is_silent(core, boot_ms)) {
        log_warning("the controller has not responded for %lld s: reconnecting",
            (long long)((boot_ms - core->last_contact_ms) / 1000));
        core->beat_at = 0;
        core->effects.hang_up(core->effects.arg);
        return 0;
    }
    if (boot_ms >= core->beat_at) {
        struct message_heartbeat heartbeat = { .sent_ms = boot_ms };
        core->effects.send(core->effects.arg, &message_heartbeat_record, &heartbeat);
        core->beat_at = boot_ms + core->heartbeat_ms;
    }
    return core->beat_at;
}
