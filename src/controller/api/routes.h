/* SPDX-License-Identifier: MIT */
/* The handlers that the route table names. Each answers its request once, now or later. */
#pragma once

struct request;

void handle_submit(struct request *request);   // serve_submit.c
void handle_list(struct request *request);     // serve_list.c
void handle_show(struct request *request);     // serve_show.c
void handle_wait(struct request *request);     // serve_wait.c
void handle_cancel(struct request *request);   // serve_cancel.c
void handle_log(struct request *request);      // serve_log.c
void handle_why(struct request *request);      // serve_why.c
void handle_hold(struct request *request);     // serve_rules.c
void handle_release(struct request *request);  // serve_rules.c
void handle_edit(struct request *request);     // serve_rules.c
void handle_signal(struct request *request);   // serve_control.c
void handle_suspend(struct request *request);  // serve_control.c
void handle_continue(struct request *request); // serve_control.c
void handle_requeue(struct request *request);  // serve_control.c
void handle_retry(struct request *request);    // serve_retry.c
void handle_terminal(struct request *request); // serve_terminal.c
void handle_exec(struct request *request);     // serve_terminal.c
void handle_pause(struct request *request);    // serve_cluster.c
void handle_release_gpus(struct request *request);
void handle_resume(struct request *request);       // serve_cluster.c
void handle_policy(struct request *request);       // serve_cluster.c
void handle_drain(struct request *request);        // serve_cluster.c
void handle_node_resume(struct request *request);  // serve_cluster.c
void handle_fence(struct request *request);        // serve_cluster.c
void handle_reserve(struct request *request);      // serve_reservations.c
void handle_reservations(struct request *request); // serve_reservations.c
void handle_unreserve(struct request *request);    // serve_reservations.c
void handle_users(struct request *request);        // serve_accounts.c
void handle_journal(struct request *request);      // serve_journal.c
void handle_gpus(struct request *request);         // serve_gpus.c
void handle_history(struct request *request);      // serve_history.c
void handle_ended(struct request *request);        // serve_ended.c
void handle_nodes(struct request *request);        // serve_gpus.c
void handle_node_token(struct request *request);   // serve_nodes.c
void handle_forget(struct request *request);       // serve_nodes.c
void handle_events(struct request *request);       // serve_events.c
void handle_make_token(struct request *request);   // serve_tokens.c
void handle_tokens(struct request *request);       // serve_token_list.c
void handle_revoke_token(struct request *request); // serve_token_list.c
void handle_config(struct request *request);       // serve_config.c
void handle_version(struct request *request);      // serve_meta.c
void handle_health(struct request *request);       // serve_meta.c
void handle_limits(struct request *request);       // serve_meta.c
void handle_acquire(struct request *request);      // serve_acquire.c
void handle_plain_jobs(struct request *request);   // serve_acquire.c
void handle_status(struct request *request);       // serve_acquire.c
void handle_openapi(struct request *request);      // serve_openapi.c
