/* SPDX-License-Identifier: MIT */
/* The parts of mgpud, as a table of contents. main.c makes them in this order and takes them down in reverse.
 */
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
struct streams;       // streams.h: second connections that agents dial back
struct gpu_history;   // gpu_history.h: what GPUs did
struct serve;         // http/server.h: the HTTP API
struct node_registry; // nodes/registry.h: the machines that are nodes
struct munge_worker;  // munge_worker.h: asks munged who made a credential
struct node_listener; // nodes/listener.h: the port where they dial in
struct api_gate;      // api/gate.h: the API for other machines
struct retention;     // retention.h: old jobs leave the store
struct turns;         // turns.h: when a turn of the loop ends, and how long they take

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
    struct api_gate *api_gate;
    struct munge_worker *munge_worker; // NULL: --munge off
    struct agent_process *agent;
    struct gpu_history *history;
    struct serve *serve;
    struct retention *retention;
    struct turns *turns;
    bool is_root;    // started as root: jobs of several users
    bool is_leaving; // nothing is decided any more
    uint32_t admin_uid;
    char boot_id[BOOT_ID_SIZE];
    int64_t started_wall_ms;
    struct histogram passes, commits; // how long they took: histogram_of_work
    int64_t commit_us; // boot clock: when the batch that is being written was handed over; 0: none is
    int exit_status;   // of the program, when something ends the loop
    void (*on_local_node_up)(struct controller *controller); // its agent has said HELLO; may come again
};
