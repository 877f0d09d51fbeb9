/* SPDX-License-Identifier: MIT */
/*
 * The command lines of container runtimes: podman, rootless and without its own cgroups, so that processes
 * stay in the attempt's, or apptainer. Runs as the user, after the setup, in the process that becomes the
 * runtime.
 */
#pragma once

#include <stdbool.h>

#include "base/strings.h"
#include "job/launch.h"
#include "shepherd/steps.h"

/*
 * Appends the words to `ret`, for this environment and directory; for apptainer the environment is completed.
 * Returns STEP_NONE, or the reason why the container cannot be started.
 */
enum launch_step container_words(
    const struct launch_image *image, const struct strings *command, struct strings *ret);

/* True if podman can map more than one uid for this user, according to that file or to the source that
 * nsswitch.conf specifies instead. */
bool container_has_ids(const char *subuid, const char *nsswitch);

/* Starts a process that removes leftovers of this user's killed containers. Nothing waits for it. */
void container_tidy(const struct strings *words);
