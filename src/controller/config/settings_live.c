/* SPDX-License-Identifier: MIT */
/* The settings that a reload changes: those that the tables mark as live. */
#include "controller/config/settings.h"

void settings_take_up(struct controller_options *options, struct controller_options *fresh)
{
    struct controller_options before = *options, after = *fresh;
    options->sched = after.sched;
    options->external = after.external;
    options->health = after.health;
    options->idle = after.idle;
    options->notifications = after.notifications;
    options->park = after.park;
    options->early = after.early;
    options->are_priorities_of_all = after.are_priorities_of_all;
    options->max_time_ms = after.max_time_ms;
    options->default_time_ms = after.default_time_ms;
    options->grace_ms = after.grace_ms;
    options->start_patience_ms = after.start_patience_ms;
    options->keep_jobs_ms = after.keep_jobs_ms;
    options->keep_max = after.keep_max;
    options->user_max_queued = after.user_max_queued;
    options->user_max_stored = after.user_max_stored;
#define SWAP(member_) (options->member_ = after.member_, fresh->member_ = before.member_)
    SWAP(priority_group);
    SWAP(accounts);
    SWAP(n_accounts);
    SWAP(partitions);
    SWAP(n_partitions);
    SWAP(roles);
    SWAP(notes);
    SWAP(n_notes);
    SWAP(warnings);
    SWAP(files);
    SWAP(n_files);
#undef SWAP
}
