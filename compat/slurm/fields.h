/* SPDX-License-Identifier: MIT */
/* Fields of a job in Slurm's format, used by the tables of squeue, sacct and scontrol. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The text for a job, which the caller frees. */
typedef char *slurm_text_fn(const json_t *job, int64_t now_ms);

/* Defines such a function as one expression of its parameters. TEXT(name) is its declaration within the
 * file. */
#define FIELD(name, text)                                                                                    \
    TEXT(name)                                                                                               \
    {                                                                                                        \
        return text;                                                                                         \
    }

slurm_text_fn slurm_text_job_id;        // "12", "12_3", "12_[0-4%2]"
slurm_text_fn slurm_text_raw_id;        // id of its own
slurm_text_fn slurm_text_array_job_id;  // "12", also for an element
slurm_text_fn slurm_text_array_task_id; // "3", "0-4%2", "N/A"
slurm_text_fn slurm_text_name, slurm_text_user, slurm_text_uid, slurm_text_group, slurm_text_partition;
slurm_text_fn slurm_text_account, slurm_text_qos, slurm_text_comment, slurm_text_command,
    slurm_text_submit_line, slurm_text_directory;
slurm_text_fn slurm_text_state, slurm_text_compact_state, slurm_text_account_state; // "CANCELLED by 1000"
slurm_text_fn slurm_text_reason, slurm_text_nodes_or_reason, slurm_text_nodes, slurm_text_batch_host;
slurm_text_fn slurm_text_node_count, slurm_text_cpus, slurm_text_tasks, slurm_text_step_tasks,
    slurm_text_memory, slurm_text_gres;
slurm_text_fn slurm_text_priority_part;  // "0.99998473934829"
slurm_text_fn slurm_text_tres_by_number; // "cpu=1,mem=1G,node=1,billing=1" of scontrol
slurm_text_fn slurm_text_tres, slurm_text_priority, slurm_text_nice, slurm_text_dependency, slurm_text_exit;
slurm_text_fn slurm_text_derived_exit; // of the steps (slurm_steps_derive())
slurm_text_fn slurm_text_account_exit; // of sacct
slurm_text_fn slurm_text_limit, slurm_text_used, slurm_text_left, slurm_text_elapsed, slurm_text_elapsed_raw,
    slurm_text_cpu_time, slurm_text_cpu_time_raw;
slurm_text_fn slurm_text_limit_raw, slurm_text_account_limit, slurm_text_account_nodes;
slurm_text_fn slurm_text_submitted, slurm_text_started, slurm_text_expected, slurm_text_ended;
slurm_text_fn slurm_text_account_start, slurm_text_account_end; // "Unknown" where squeue has "N/A"
slurm_text_fn slurm_text_restarts, slurm_text_none, slurm_text_zero;
slurm_text_fn slurm_text_max_rss, slurm_text_max_rss_task, slurm_text_max_rss_node, slurm_text_ave_rss;
slurm_text_fn slurm_text_total_cpu, slurm_text_user_cpu, slurm_text_system_cpu, slurm_text_ave_cpu;
slurm_text_fn slurm_text_output, slurm_text_cluster, slurm_text_null, slurm_text_unavailable, slurm_text_star;
slurm_text_fn slurm_text_excluded, slurm_text_requested_nodes, slurm_text_gid, slurm_text_licenses,
    slurm_text_wckey;
slurm_text_fn slurm_text_oversubscribe, slurm_text_requeue, slurm_text_batch, slurm_text_pending_time,
    slurm_text_task_cpus, slurm_text_tasks_per_node, slurm_text_deadline, slurm_text_begin,
    slurm_text_least_limit, slurm_text_least_short;

/* For requests of a job; NULL if it did not request them. */
slurm_text_fn slurm_text_cpus_per_tres, slurm_text_mem_per_tres, slurm_text_tasks_per_tres,
    slurm_text_tres_bind, slurm_text_tres_freq, slurm_text_tres_per_job, slurm_text_tres_per_node,
    slurm_text_tres_per_socket, slurm_text_tres_per_task, slurm_text_least_memory_of_cpu,
    slurm_text_least_memory_of_node, slurm_text_least_memory;

/* Like slurm_time_text(), but in the format of SLURM_TIME_FORMAT if that is "relative" or a format of
 * strftime(3); for display. */
char *slurm_time_shown(int64_t wall_ms, const char *otherwise);

/* When the present day began, wall clock. */
int64_t slurm_midnight_ms(void);

/* "Sun Nov 22 23:43:02 2026"; "Unknown" for 0. The caller frees it. */
char *slurm_date_text(int64_t wall_ms);

/* The same for the present time, printed above the lists of -l and -i. */
void slurm_print_date(void);

/* "5:02", "1:05:02", "1-01:05:02" of squeue; with `is_full` "00:05:02" of sacct. The caller frees it. */
char *slurm_duration_text(int64_t seconds, int is_full);

/* The number of nodes that a job has or requests, and the number of CPUs on all of them: one per task unless
 * it requests CPUs. */
int64_t slurm_job_nodes(const json_t *job);
int64_t slurm_job_cpus(const json_t *job);

/* "4G", "100M", "0" for less than a MiB. The caller frees it. */
char *slurm_memory_text(int64_t bytes);

/* Prints text cut or padded to a width: right-aligned if it is negative; 0: unchanged. */
void slurm_print_cell(const char *text, int width);
