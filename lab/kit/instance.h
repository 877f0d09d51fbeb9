/* SPDX-License-Identifier: MIT */
/*
 * A private mgpud with its agent in the kit's folder, and its command line. As root it is an mgpud of the
 * system's kind; where that does not start, as in a container without the rights for it, the user nobody runs
 * one without root.
 */
#pragma once

#include "lab/kit/kit.h"

/* Starts it and waits until it is ready. -EIO with the last line of its log if it does not start. */
int instance_start(struct kit *kit, struct error *err);

/* Ends its jobs, stops it, and ends what is left of it. Allowed if it was never started. */
void instance_stop(struct kit *kit);

/* Kills mgpud, its agent and their helpers with SIGKILL, but no shepherd and no job; then starts it again. */
int instance_crash(struct kit *kit, struct error *err);

/* Stops it and starts it again with these options of mgpud besides its own, ending in NULL. Its jobs are
 * ended. */
int instance_restart(struct kit *kit, const char *const *options, struct error *err);

/* The requests that follow are those of that user, for root; -1: of the instance's own. False if this process
 * cannot become that user, or the user cannot execute the kit's programs. */
bool instance_act_as(struct kit *kit, int64_t uid);

/* Of mgpu's own user, whom every system has. */
#define INSTANCE_OTHER_UID 65534

/* `program` is the name of its file, and `pidfd` is closed after the visit. */
typedef void instance_visit_fn(pid_t pid, int pidfd, const char *program, void *arg);

/* Each process that runs one of the kit's programs and whose command line names its folder, but not this one:
 * an editor with a file of that folder is no process of the kit. */
void instance_each(const struct kit *kit, instance_visit_fn *visit, void *arg);

/* The first of its processes for which `is_wanted` holds; 0: none. */
pid_t instance_find(const struct kit *kit, bool (*is_wanted)(pid_t pid));

/* True if it runs as root. */
bool instance_is_root(const struct instance *instance);

/* Runs `mgpu ARGUMENTS --json`; `arguments` ends in NULL, and has KIT_GPU for the number of the GPU. Returns
 * its exit status, or a negative errno with what it printed on standard error. *ret_answer may be NULL. */
int instance_ask(struct kit *kit, const char *const *arguments, int64_t timeout_ms, json_t **ret_answer,
    struct error *err);

/* What `mgpu ARGUMENTS` prints; the caller frees it. */
char *instance_print(struct kit *kit, const char *const *arguments, int64_t timeout_ms);

/* Runs `mgpu submit OPTIONS -- COMMAND`; the job's number or a negative errno. Both lists end in NULL. */
int64_t instance_submit(
    struct kit *kit, const char *const *options, const char *const *command, struct error *err);

/* Waits until the job has ended; the job as `mgpu show` has it. -ETIMEDOUT. */
int instance_wait(struct kit *kit, int64_t job, int64_t timeout_ms, json_t **ret, struct error *err);

/* The output of a job so far; the caller frees it. */
char *instance_output(struct kit *kit, int64_t job);

/* Waits until the output of a job has `text` that many times. -ETIMEDOUT, -ESRCH: the job has ended without.
 */
int instance_await_output(struct kit *kit, int64_t job, const char *text, size_t times, int64_t timeout_ms);

/* The feature of the node that `mgpu doctor` shows under that name; NULL: there is none. Borrowed from
 * `doctor`. */
const json_t *instance_feature(const json_t *doctor, const char *name);
