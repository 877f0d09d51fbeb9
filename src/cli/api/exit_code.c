/* SPDX-License-Identifier: MIT */
/* Two tables: for mgpu's own errors, and for the ends of jobs. mgpu(1) documents both. */
#include "cli/api/exit_code.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "base/json/field.h"
#include "job/state.h"

static const struct {
    int error, code;
} error_codes[] = {
    { EINVAL, EXIT_USAGE },
    { ERANGE, EXIT_USAGE },
    { EDOM, EXIT_USAGE },    // a value of a Slurm option
    { EBADSLT, EXIT_USAGE }, // no node can ever run the job
    { E2BIG, EXIT_USAGE },
    { ENOTUNIQ, EXIT_USAGE }, // a name that several jobs have
    { ENOENT, EXIT_MISSING },
    { EPERM, EXIT_REFUSED },
    { EACCES, EXIT_REFUSED },
    { EHOSTDOWN, EXIT_UNREACHABLE },
    { EAGAIN, EXIT_UNREACHABLE },
    { EHOSTUNREACH, EXIT_UNREACHABLE },
    { ETIMEDOUT, EXIT_UNREACHABLE },
    { EALREADY, EXIT_WRONG_STATE },
    { EEXIST, EXIT_WRONG_STATE },
    { ETIME, EXIT_TIMEOUT },
};

int exit_code_of_error(int code)
{
    for (size_t i = 0; i < sizeof(error_codes) / sizeof(error_codes[0]); i++)
        if (error_codes[i].error == -code)
            return error_codes[i].code;
    return EXIT_PARTLY;
}

static int own_status(const json_t *job)
{
    int64_t code = field_integer(job, "exit_code", EXIT_SELF);
    return code >= 0 && code <= 255 ? (int)code : EXIT_SELF;
}

static int failed_status(const json_t *job)
{
    int code = own_status(job);
    return code == 0 ? EXIT_SELF : code;
}

static int signal_status(const json_t *job)
{
    int64_t number = field_integer(job, "signal", 0);
    return number > 0 && number < 128 ? EXIT_SIGNAL_BASE + (int)number : failed_status(job);
}

static int cancelled_status(const json_t *job)
{
    return EXIT_SIGNAL_BASE + SIGTERM;
}

static int unknown_status(const json_t *job)
{
    return EXIT_SELF;
}

/* The status of its process is unknown, but the end that was waited for has been reached. */
static int released_status(const json_t *job)
{
    return EXIT_OK;
}

static int time_limit_status(const json_t *job)
{
    return EXIT_TIMEOUT;
}

static int fault_status(const json_t *job)
{
    return field_integer(job, "signal", 0) != 0 ? signal_status(job) : own_status(job);
}

int exit_code_of_job(const json_t *job)
{
    static int (*const statuses[END_KINDS])(const json_t *) = {
        [END_NONE] = unknown_status,
        [END_EXIT] = own_status,
        [END_SIGNAL] = signal_status,
        [END_CANCELLED] = cancelled_status,
        [END_START_FAILED] = failed_status,
        [END_SETUP_FAILED] = failed_status,
        [END_UNKNOWN] = unknown_status,
        [END_REBOOT] = unknown_status,
        [END_TIME_LIMIT] = time_limit_status,
        [END_DEADLINE] = unknown_status,
        [END_DEPENDENCY] = unknown_status,
        [END_OOM] = signal_status,
        [END_GPU_FAULT] = fault_status,
        [END_IDLE_TIMEOUT] = time_limit_status,
        [END_RELEASED] = released_status,
        [END_NODE_LOST] = unknown_status,
        [END_GPU_OOM] = fault_status,
        [END_GPU_MEM] = own_status,
        [END_BUDGET] = time_limit_status,
    };
    const char *name = field_text(job, "ended_by");
    enum job_end end = name == NULL ? END_NONE : job_end_from_name(name);
    return end >= END_KINDS ? EXIT_SELF : statuses[end](job);
}
