/* SPDX-License-Identifier: MIT */
#include "job/end_advice.h"

#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/gpu_oom.h"
#include "job/park.h"
#include "job/xid.h"

#define LINE_SHOWN_MAX 300

static const char *advise_fault(const struct job_usage *usage)
{
    if (usage != NULL && xid_class_of(usage->xid) == XID_APPLICATION)
        return "Usually the program is at fault: compute-sanitizer finds the location.";
    return "The GPU was at fault, and is out of service now: submit the job again.";
}

static const char *advise_gpu_oom(const struct job_ask *ask)
{
    if (ask->gpu_mem > 0 || ask->gpu_share > 0)
        return "It shared the GPU. Request more with -m, or the whole GPU; with --retry-oom x1.5 mgpu does "
               "so itself.";
    return "Reduce its memory use, for example with smaller batches, or request more GPUs or a model with "
           "more memory.";
}

/* The last line for which `is_it` holds, escaped; NULL: there is none. */
static char *last_line(const char *text, bool (*is_it)(const char *line))
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy, *found = NULL;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;)
        if (is_it(line))
            found = line;
    return found == NULL ? NULL : text_escape(found, LINE_SHOWN_MAX);
}

/* mgpu's own line only repeats the exit status. */
static bool is_of_setup(const char *line)
{
    return line[strspn(line, " \t\r")] != '\0' && strncmp(line, "mgpu: ", 6) != 0;
}

/* An end as gpu_oom includes the line already. */
static char *oom_line(const struct job *job, const struct job_usage *usage)
{
    bool is_explained = job->end != END_EXIT && job->end != END_SIGNAL;
    return is_explained || usage == NULL || usage->tail == NULL ? NULL : gpu_oom_line(usage->tail);
}

char *job_end_cause(const struct job *job, const struct job_usage *usage)
{
    if (usage == NULL || usage->tail == NULL)
        return NULL;
    if (job->end == END_SETUP_FAILED) {
        _cleanup_free_ char *line = last_line(usage->tail, is_of_setup);
        return line == NULL ? NULL : xasprintf("Its setup reported: %s", line);
    }
    _cleanup_free_ char *line = oom_line(job, usage);
    return line == NULL ? NULL : xasprintf("GPU out of memory: %s", line);
}

const char *job_end_advice(const struct job *job, const struct job_usage *usage)
{
    static const char *const rows[END_KINDS] = {
        [END_TIME_LIMIT] =
            "It was still running at its time limit: request more with -t, or save its state more often.",
        [END_IDLE_TIMEOUT] =
            "It left its GPUs or its terminal unused for too long. If that was intended: --idle-ok, "
            "if the site allows it, or a longer --tty-idle. If its work was done: let the command "
            "exit.",
        [END_UNKNOWN] = "Both processes that could have seen its end were killed, so its status is unknown.",
        [END_OOM] = "It exceeded its memory limit: request more with -M, or let it use less.",
        [END_GPU_MEM] =
            "It used more GPU memory than the share it requested: request more with -m, or let it use "
            "less. The share includes the memory of each process's CUDA context.",
        [END_BUDGET] =
            "The token it was submitted with permits no more GPU time: see mgpu token list, and create "
            "another one with more --max-gpu-hours if that was too little.",
        [END_REBOOT] = "Its node went down with it. Its last actions are not known.",
        [END_NODE_LOST] =
            "Its node was lost while it ran. With --requeue-on node-lost it would have been requeued.",
        [END_START_FAILED] = "Its command never ran.",
        [END_SETUP_FAILED] = "The setup command failed, so its command never ran.",
        [END_DEADLINE] = "No suitable GPUs were free before its deadline: see mgpu why while a job waits.",
    };
    _cleanup_free_ char *line = oom_line(job, usage);
    if (job->end == END_GPU_FAULT && job->text != NULL && job_park(job)->text != NULL &&
        strstr(job->text, job_park(job)->text) != NULL)
        return "The contents of its GPU memory are lost: mgpu retry submits it again, and --no-park keeps it "
               "from being parked.";
    if (job->end == END_GPU_FAULT)
        return advise_fault(usage);
    if (job->end == END_GPU_OOM || line != NULL)
        return advise_gpu_oom(job->ask);
    return (unsigned)job->end < END_KINDS ? rows[job->end] : NULL;
}
