/* SPDX-License-Identifier: MIT */
/*
 * A private mgpud with its agent in the kit's folder, and its command line. As root it is an mgpud of the
 * system's kind; where that does not start, as in a container without the rights for it, the user nobody runs
 * one without root.
 */
#pragma once

#include "kit/kit.h"

/* Starts it and waits until it is ready. -EIO with the last line of its log if it does not start. */
int instance_start(struct kit *kit, struct error *err);

/* Ends its jobs, stops it, and ends what is left of it. Allowed if it was never started. */
void instance_stop(struct kit *kit);

/* Kills mgpud, its agent and their helpers with SIGKILL, but no shepherd and no job; then starts it again. */
int instance_crash(struct kit *kit, struct error *err);

/* True if it runs as root. */
bool instance_is_root(const struct instance *instance);

/* Runs `mgpu ARGUMENTS --json`; `arguments` ends in NULL. Returns its exit status, or a negative errno with
 * what it printed on standard error. *ret_answer may be NULL. */
int instance_ask(struct kit *kit, const char *const *arguments, int64_t timeout_ms, json_t **ret_answer,
    struct error *err);

/* Runs `mgpu submit OPTIONS -- COMMAND`; the job's number or a negative errno. Both lists end in NULL. */
int64_t instance_submit(
    struct kit *kit, const char *const *options, const char *const *command, struct error *err);

/* Waits until the job has ended; the job as `mgpu show` has it. -ETIMEDOUT. */
int instance_wait(struct kit *kit, int64_t job, int64_t timeout_ms, json_t **ret, struct error *err);

/* The output of a job so far; the caller frees it. */
char *instance_output(struct kit *kit, int64_t job);

/* Waits until the output of a job has `text`. -ETIMEDOUT. */
int instance_await_output(struct kit *kit, int64_t job, const char *text, int64_t timeout_ms);

/* The feature of the node that `mgpu doctor` shows under that name; NULL: there is none. Borrowed from
 * `doctor`. */
const json_t *instance_feature(const json_t *doctor, const char *name);
