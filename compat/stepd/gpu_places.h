/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of a task among those of its job on the node. srun names them by their places in the lists that
 * the node gave to the job, because a node numbers the GPUs of a job in its own way.
 */
#pragma once

#define STEPD_GPU_PLACES "MGPU_STEP_GPU_PLACES" // variable of a task: "0,2"

/* The elements of "a,b,c" at the places "0,2": "a,c"; NULL if the list has none of them. The caller frees
 * it. */
char *stepd_gpus_at(const char *list, const char *places);
