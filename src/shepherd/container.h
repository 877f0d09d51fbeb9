/* SPDX-License-Identifier: MIT */
/*
 * The words that run a command in a container image: by podman, rootless and without cgroups of its own, so
 * that its processes stay in the attempt's, or by apptainer. Runs as the user, after the setup, in the
 * process that becomes the runtime.
 */
#pragma once

#include <stdbool.h>

#include "base/strings.h"
#include "job/launch.h"
#include "shepherd/steps.h"

/*
 * Appends them to `ret`, made for this environment and this directory; for apptainer the environment is
 * completed. STEP_NONE, else what keeps the container from being started.
 */
enum launch_step container_words(
    const struct launch_image *image, const struct strings *command, struct strings *ret);

/* Podman can map more users than one for this one: by that file, or by what nsswitch.conf names in its place.
 */
bool container_has_ids(const char *subuid, const char *nsswitch);

/* Starts a process that removes what containers of this user left that were killed; it is waited for by
 * nobody. */
void container_tidy(const struct strings *words);
