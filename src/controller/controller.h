/* SPDX-License-Identifier: MIT */
/* The parts of mgpud. main.c creates them in this order and destroys them in reverse. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/histogram.h"
#include "base/process.h"
#include "controller/config/options.h"
#include "controller/core/core.h"
#include "store/store.h"

struct agent_process; // agent_process.h: the local node's agent and its keeper
struct links;         // links.h: connections of agents, frames in and out
struct streams;       // streams.h: second connections opened by agents
struct gpu_history;   // gpu_history.h: past samples of GPUs
struct serve;         // http/server.h: the HTTP API
struct node_registry; // nodes/registry.h: joined machines
struct munge_worker;  // munge_worker.h: verifies credentials with munged
struct node_listener; // nodes/listener.h: the port for nodes
struct api_gate;      // api/gate.h: the API for other machines
struct run_watch;     // run_watch.h: the socket's name
struct tcp;           // tcp.h: the port of the API
struct retention;     // retention.h: removes old jobs from the store
struct cluster;       // cluster/cluster.h: several controllers
struct standby_view;  // standby_view.h: answers of a standby
struct turns;         // turns.h: turns of the event loop, and their durations

/* The port of the API (tcp.h), for those who answer requests. */
struct tcp_state {
    bool is_bound;
    bool is_contested;    // a program of another user had one of its addresses since mgpud started
    bool lacks_localhost; // other programs can have one of the addresses of the name `localhost`
    struct error trouble; // why it is not bound although configured; code 0: it is
};

struct controller {
    struct controller_options options;
    struct event_base *loop;
    struct store *store;
    struct store_summary summary;
    struct store_verification verification; // the latest check of the store
    struct core *core;
    struct links *links;
    struct streams *streams;
    struct node_registry *registry;
    struct node_listener *node_listener;
    struct tcp *tcp;
    struct run_watch *run_watch;
    struct tcp_state tcp_state;
    struct api_gate *api_gate;         // NULL: only this machine reaches the port
    struct munge_worker *munge_worker; // NULL: --munge off
    struct agent_process *agent;
    struct gpu_history *history;
    struct serve *serve;
    struct retention *retention;
    struct turns *turns;
    struct cluster *cluster; // NULL: this controller is the only one
    char cluster_pin[48];    // of its keys, as text; empty: not known yet
    struct standby_view
        *standby;    // NULL: it decides; else core and store are read-only, and may be out of date
    bool is_root;    // started as root: can run jobs of several users
    bool is_leaving; // shutting down: no more decisions
    uint32_t admin_uid;
    char boot_id[BOOT_ID_SIZE];
    int64_t started_wall_ms;
    struct histogram passes, commits; // durations: histogram_of_work
    int64_t commit_us; // boot clock: when the batch being written was passed to the store; 0: none
    int exit_status;   // of the program, set by the code that ends the loop
    void (*on_local_node_up)(struct controller *controller); // its agent has sent HELLO; may be called again
};
