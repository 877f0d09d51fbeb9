/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/slurm/others.h"
#include "cli/slurm/programs.h"
#include "cli/submit/slurm_option.h"

static int set_text(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct others *others = target;
    (void)err;
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "format", &others->format }, { "fields", &others->format }, { "jobs", &others->jobs },
        { "jobid", &others->jobs }, { "users", &others->users }, { "user", &others->users },
        { "accounts", &others->accounts }, { "partition", &others->partitions }, { "sort", &others->sort } };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(texts[i].name, option->name) == 0)
            *texts[i].text = value;
    return 0;
}

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct others *others = target;
    (void)value, (void)err;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "noheader", &others->is_headless }, { "parsable", &others->is_parsable },
        { "parsable2", &others->is_parsable }, { "all", &others->is_all }, { "allsteps", &others->is_all },
        { "Users", &others->is_users_alone }, { "helpformat", &others->is_help_format },
        { "force", &others->is_forced }, { "preserve", &others->is_preserving } };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(flags[i].name, option->name) == 0)
            *flags[i].flag = true;
    others->has_last_delimiter |= strcmp(option->name, "parsable") == 0;
    return 0;
}

const struct slurm_option slurm_sacctmgr_options[] = {
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "associations", 's', NULL, NULL, "with associations"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "immediate", 'i', NULL, NULL, "do not ask"),
    SLURM_ROW(SLURM_SACCTMGR, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SACCTMGR, "parsable", 'p', NULL, set_flag, NULL, "fields with a | behind each"),
    SLURM_ROW(SLURM_SACCTMGR, "parsable2", 'P', NULL, set_flag, NULL, "fields with a | between them"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "quiet", 'Q', NULL, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "readonly", 'r', NULL, NULL, "change nothing, as always here"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

const struct slurm_option slurm_sshare_options[] = {
    SLURM_ROW(SLURM_SSHARE, "accounts", 'A', "list", set_text, NULL, "of these accounts"),
    SLURM_ROW(SLURM_SSHARE, "all", 'a', NULL, set_flag, NULL, "of all users"),
    SLURM_ROW(SLURM_SSHARE, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_ROW(SLURM_SSHARE, "format", 'o', "fields", set_text, NULL, "fields, each with %width"),
    SLURM_NO_EFFECT(SLURM_SSHARE, "long", 'l', NULL, NULL, "more fields"),
    SLURM_ROW(SLURM_SSHARE, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SSHARE, "parsable", 'p', NULL, set_flag, NULL, "fields with a | behind each"),
    SLURM_ROW(SLURM_SSHARE, "parsable2", 'P', NULL, set_flag, NULL, "fields with a | between them"),
    SLURM_NO_EFFECT(SLURM_SSHARE, "partition", 'm', NULL, NULL, "shares of each partition"),
    SLURM_ROW(SLURM_SSHARE, "users", 'u', "list", set_text, NULL, "of these users (you)"),
    SLURM_ROW(SLURM_SSHARE, "Users", 'U', NULL, set_flag, NULL, "users, and not their account"),
    SLURM_NO_EFFECT(SLURM_SSHARE, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

const struct slurm_option slurm_sprio_options[] = {
    SLURM_ROW(SLURM_SPRIO, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "federation", 0, NULL, "FEDERATION", "jobs of the federation"),
    SLURM_ROW(SLURM_SPRIO, "format", 'o', "format", set_text, NULL,
        "letters, as in '%.15i %Y'; %P is the place in the queue"),
    SLURM_ROW(SLURM_SPRIO, "jobs", 'j', "list", set_text, NULL, "these jobs"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "local", 0, NULL, "LOCAL", "jobs of this cluster"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "long", 'l', NULL, NULL, "more columns"),
    SLURM_ROW(SLURM_SPRIO, "noheader", 'h', NULL, set_flag, NULL, "no header"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "norm", 'n', NULL, NULL, "factors from 0 to 1"),
    SLURM_ROW(SLURM_SPRIO, "partition", 'p', "list", set_text, NULL, "jobs of these partitions"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "sibling", 0, NULL, "SIBLING", "siblings of a federation"),
    SLURM_ROW(
        SLURM_SPRIO, "sort", 'S', "letters", set_text, NULL, "order: by letters of -o, '-' for descending"),
    SLURM_ROW(SLURM_SPRIO, "user", 'u', "list", set_text, NULL, "jobs of these users"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "verbose", 'v', NULL, NULL, "increase verbosity"),
    SLURM_REFUSE(SLURM_SPRIO, "weights", 'w', NULL, "a place in the queue is no sum of weights: mgpu why"),
    { 0 },
};

const struct slurm_option slurm_sdiag_options[] = {
    SLURM_NO_EFFECT(SLURM_SDIAG, "all", 'a', NULL, NULL, "all counts"),
    SLURM_ROW(SLURM_SDIAG, "cluster", 'M', "name", slurm_set_clusters, NULL, "cluster: mgpu or all"),
    SLURM_REFUSE(SLURM_SDIAG, "reset", 'r', NULL, "the counts are those of the present jobs"),
    SLURM_NO_EFFECT(SLURM_SDIAG, "sort-by-id", 'i', NULL, NULL, "order of messages"),
    SLURM_NO_EFFECT(SLURM_SDIAG, "sort-by-time", 't', NULL, NULL, "order of messages"),
    SLURM_NO_EFFECT(SLURM_SDIAG, "sort-by-time2", 'T', NULL, NULL, "order of messages"),
    { 0 },
};

const struct slurm_option slurm_sstat_options[] = {
    SLURM_ROW(
        SLURM_SSTAT, "allsteps", 'a', NULL, set_flag, NULL, "all steps of the job, not the first alone"),
    SLURM_ROW(SLURM_SSTAT, "fields", 0, "fields", set_text, NULL, "the same as --format"),
    SLURM_ROW(SLURM_SSTAT, "format", 'o', "fields", set_text, NULL, "fields, each with %width"),
    SLURM_ROW(SLURM_SSTAT, "helpformat", 'e', NULL, set_flag, NULL, "print the names of all fields"),
    SLURM_ROW(SLURM_SSTAT, "jobs", 'j', "list", set_text, NULL, "these jobs or steps"),
    SLURM_NO_EFFECT(SLURM_SSTAT, "noconvert", 0, NULL, NULL, "sizes as they are kept"),
    SLURM_ROW(SLURM_SSTAT, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SSTAT, "parsable", 'p', NULL, set_flag, NULL, "fields with a | behind each"),
    SLURM_ROW(SLURM_SSTAT, "parsable2", 'P', NULL, set_flag, NULL, "fields with a | between them"),
    SLURM_REFUSE(SLURM_SSTAT, "pidformat", 'i', NULL, "processes are not listed"),
    SLURM_NO_EFFECT(SLURM_SSTAT, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

const struct slurm_option slurm_sattach_options[] = {
    SLURM_REFUSE(SLURM_SATTACH, "error-filter", 0, "task", "the output of the whole job is followed"),
    SLURM_REFUSE(SLURM_SATTACH, "input-filter", 0, "task", "the output alone is followed"),
    SLURM_REFUSE(SLURM_SATTACH, "label", 'l', NULL, "srun --label writes the numbers of tasks"),
    SLURM_REFUSE(SLURM_SATTACH, "layout", 0, NULL, "scontrol show step prints it"),
    SLURM_REFUSE(SLURM_SATTACH, "output-filter", 0, "task", "the output of the whole job is followed"),
    SLURM_REFUSE(SLURM_SATTACH, "pty", 0, NULL, "mgpu attach connects to a terminal"),
    SLURM_NO_EFFECT(SLURM_SATTACH, "quiet", 'Q', NULL, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_SATTACH, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

const struct slurm_option slurm_sbcast_options[] = {
    SLURM_NO_EFFECT(SLURM_SBCAST, "compress", 'C', "[kind]", "COMPRESS", "compress what is copied"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "exclude", 0, "list", "EXCLUDE", "libraries that are left out"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "fanout", 'F', "n", "FANOUT", "how many nodes are written at once"),
    SLURM_ROW(SLURM_SBCAST, "force", 'f', NULL, set_flag, "FORCE", "replace a file that is there"),
    SLURM_ROW(SLURM_SBCAST, "jobid", 'j', "id", set_text, NULL, "job to whose nodes the file is copied"),
    SLURM_ROW(SLURM_SBCAST, "preserve", 'p', NULL, set_flag, "PRESERVE", "keep the time of the file"),
    SLURM_REFUSE(SLURM_SBCAST, "send-libs", 0, "[yes|no]", "libraries are not copied"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "size", 's', "size", "SIZE", "size of a block"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "timeout", 't', "seconds", "TIMEOUT", "how long a message may take"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};
