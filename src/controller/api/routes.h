/* SPDX-License-Identifier: MIT */
/* The handlers in the route table. Each answers its request once, immediately or later. */
#pragma once

struct job;
struct request;

void handle_submit(struct request *request);                          // api/submit.c
void handle_list(struct request *request);                            // api/list.c
void handle_show(struct request *request);                            // api/show.c
void handle_wait(struct request *request);                            // api/wait.c
void handle_cancel(struct request *request, const struct job *job);   // api/cancel.c
void handle_log(struct request *request);                             // api/log.c
void handle_why(struct request *request, const struct job *job);      // api/why.c
void handle_waiting(struct request *request);                         // api/rules.c
void handle_hold(struct request *request, const struct job *job);     // api/rules.c
void handle_release(struct request *request, const struct job *job);  // api/rules.c
void handle_edit(struct request *request, const struct job *job);     // api/rules.c
void handle_signal(struct request *request, const struct job *job);   // api/control.c
void handle_suspend(struct request *request, const struct job *job);  // api/control.c
void handle_park(struct request *request, const struct job *job);     // api/control.c
void handle_unpark(struct request *request, const struct job *job);   // api/control.c
void handle_continue(struct request *request, const struct job *job); // api/control.c
void handle_requeue(struct request *request, const struct job *job);  // api/control.c
void handle_retry(struct request *request);                           // api/retry.c
void handle_terminal(struct request *request);                        // api/terminal.c
void handle_input(struct request *request);
void handle_exec(struct request *request);
void handle_port(struct request *request);
void handle_steps(struct request *request);
void handle_step(struct request *request);
void handle_step_end(struct request *request, const struct job *job);
void handle_step_usage(struct request *request, const struct job *job);
void handle_step_signal(struct request *request, const struct job *job); // api/terminal.c
void handle_pause(struct request *request);                              // api/cluster.c
void handle_release_gpus(struct request *request);
void handle_resume(struct request *request);      // api/cluster.c
void handle_policy(struct request *request);      // api/cluster.c
void handle_drain(struct request *request);       // api/cluster.c
void handle_node_resume(struct request *request); // api/cluster.c
void handle_node_parking(struct request *request);
void handle_fence(struct request *request);         // api/cluster.c
void handle_reserve(struct request *request);       // api/reservations.c
void handle_reservations(struct request *request);  // api/reservations.c
void handle_unreserve(struct request *request);     // api/reservations.c
void handle_users(struct request *request);         // api/accounts.c
void handle_partitions(struct request *request);    // api/partitions.c
void handle_forecasts(struct request *request);     // api/why.c
void handle_journal(struct request *request);       // api/journal.c
void handle_gpus(struct request *request);          // api/gpus.c
void handle_history(struct request *request);       // api/history.c
void handle_ended(struct request *request);         // api/ended.c
void handle_nodes(struct request *request);         // api/gpus.c
void handle_node_token(struct request *request);    // api/nodes.c
void handle_forget(struct request *request);        // api/nodes.c
void handle_events(struct request *request);        // api/events.c
void handle_make_token(struct request *request);    // api/tokens.c
void handle_tokens(struct request *request);        // api/tokens.c
void handle_revoke_token(struct request *request);  // api/tokens.c
void handle_config(struct request *request);        // api/meta.c
void handle_cluster(struct request *request);       // api/meta.c
void handle_version(struct request *request);       // api/meta.c
void handle_health(struct request *request);        // api/meta.c
void handle_limits(struct request *request);        // api/meta.c
void handle_metrics(struct request *request);       // api/metrics.c
void handle_acquire(struct request *request);       // api/acquire.c
void handle_plain_jobs(struct request *request);    // api/acquire.c
void handle_status(struct request *request);        // api/acquire.c
void handle_login(struct request *request);         // api/sessions.c
void handle_open_session(struct request *request);  // api/sessions.c
void handle_close_session(struct request *request); // api/sessions.c
void handle_whoami(struct request *request);        // api/sessions.c
void handle_openapi(struct request *request);       // api/openapi.c
