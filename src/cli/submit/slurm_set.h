/* SPDX-License-Identifier: MIT */
/* The functions that options of sbatch, srun and salloc call. Their target is a struct slurm_job. */
#pragma once

#include "cli/submit/slurm_option.h"

slurm_set_fn slurm_set_array;
slurm_set_fn slurm_set_constraint;
slurm_set_fn slurm_set_dependency;
slurm_set_fn slurm_set_export;
slurm_set_fn slurm_set_export_file;
slurm_set_fn slurm_set_flag;
slurm_set_fn slurm_set_exclusive;
slurm_set_fn slurm_set_gpus;
slurm_set_fn slurm_set_image;
slurm_set_fn slurm_set_immediate;
slurm_set_fn slurm_set_invalid_dependency;
slurm_set_fn slurm_set_job_clusters;
slurm_set_fn slurm_set_kill;
slurm_set_fn slurm_set_kill_command;
slurm_set_fn slurm_set_least_time;
slurm_set_fn slurm_set_licenses;
slurm_set_fn slurm_set_mail_type;
slurm_set_fn slurm_set_memory;
slurm_set_fn slurm_set_message_timeout;
slurm_set_fn slurm_set_moment;
slurm_set_fn slurm_set_mounts;
slurm_set_fn slurm_set_nice;
slurm_set_fn slurm_set_nodefile;
slurm_set_fn slurm_set_nodes;
slurm_set_fn slurm_set_number;
slurm_set_fn slurm_set_open_mode;
slurm_set_fn slurm_set_partition;
slurm_set_fn slurm_set_requeue;
slurm_set_fn slurm_set_signal;
slurm_set_fn slurm_set_text;
slurm_set_fn slurm_set_time;
