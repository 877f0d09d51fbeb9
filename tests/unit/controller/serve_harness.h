/* SPDX-License-Identifier: MIT */
/*
 * The HTTP API in one process with stand-ins for the core, the store, the links and the streams.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/api/api.h"
#include "controller/controller.h"
#include "job/job.h"
#include "wire/message.h"

#define HARNESS_JOBS_MAX   4096
#define HARNESS_EVENTS_MAX 4096
#define HARNESS_STREAM_MS  100 // time-out that is still set on a stream when it is handed over

struct later;
struct waiter;

/* The core that the API sees. */
struct core {
    struct job *jobs[HARNESS_JOBS_MAX];
    size_t n_jobs;
    struct core_node node;
    size_t n_more;        // nodes like it
    unsigned gpus_listed; // in all lists
    struct sched *sched;  // empty
    uint64_t last_event;
};

struct harness {
    struct controller controller;
    struct core core;
    char directory[64];
    char path[96]; // unix socket
    uint16_t port; // TCP, on loopback

    /* Stored and no longer in memory, or stored as well. */
    struct job *rows[64];
    size_t n_rows;
    struct job_event events[HARNESS_EVENTS_MAX];
    size_t n_events;
    unsigned pages, pages_most; // of events: how many are being read, and were at most
    bool is_store_full;
    bool is_log_full;     // etcd has no space
    bool is_deposed;      // another controller may lead
    unsigned ended_pages; // of jobs that ended: how many were asked for, and with what the last time
    uint32_t ended_uid, ended_outcomes;
    int64_t ended_since_ms;
    bool is_sum_cut;          // sums of them are too many
    struct store_token token; // the one that is stored
    uint8_t token_hash[32];
    bool has_token;

    /* What the API did. */
    struct identity asked_by;     // the last submit, cancel or wait
    struct job_spec *submitted;   // the last one
    int64_t grace_ms;             // of the last cancel
    uint64_t held;                // the last job that was held and not released
    size_t paused;                // GPUs named in the last pause
    bool has_absent_node;         // a node "absent" has joined, and not connected since
    unsigned nodes_cut;           // calls
    unsigned barriers, forgotten; // calls
    bool is_barrier_held;         // no barrier is answered while it is set
    bool is_submit_held;          // no submit is answered
    int submit_code;              // to answer submits with
    unsigned whys;                // calls
    int64_t why_ms;               // that each part of one takes
    unsigned why_parts;           // parts before the last
    unsigned looks, forecasts;    // parts of forecasts, and forecasts
    int64_t look_ms;              // that each part of one takes
    int64_t version;              // of the core

    /* The log that the stand-in agent has. */
    const char *log;
    size_t log_length;
    size_t log_missing;                    // bytes that the agent announces and does not have
    int log_error;                         // errno to open it with
    bool is_log_mute;                      // the agent never dials back
    bool keeps_streams;                    // the agent's end of older ones stays open
    bool is_log_large;                     // continued for ever
    struct message_open_log opened;        // the last OPEN_LOG, without its path
    struct message_open_terminal terminal; // the last OPEN_TERMINAL
    int agent_fd;                          // of a followed log: the agent's end
    size_t streams_forgotten;
    uint64_t agent_sent; // bytes the agent got rid of

    struct later *later;
    struct waiter *waiters;
    struct event *later_event, *agent_event;
};

struct harness *harness_new(void);
void harness_free(struct harness *harness);

/* For tests of a controller that has just started. */
int harness_start(void **state);
int harness_stop(void **state);

/* A job in memory, its request `sleep`. */
struct job *harness_add_job(struct harness *harness, uint64_t id, uint32_t uid, enum job_state state);

/* A job that only the store has. */
struct job *harness_add_row(struct harness *harness, uint64_t id, uint32_t uid);

/* Changes the state and answers who waits for it. */
void harness_set_state(struct harness *harness, struct job *job, enum job_state state);

/* Stores an event of type "started"; publishes it when `is_published`. */
void harness_add_event(struct harness *harness, uint64_t job, bool is_published);

/* Lets held barriers go. */
void harness_release_barriers(struct harness *harness);

/* One turn of the loop, at most `ms` long. */
void harness_turn(struct harness *harness, int ms);
