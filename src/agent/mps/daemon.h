/* SPDX-License-Identifier: MIT */
/* One MPS control daemon and its jobs; the states are drawn in mps.h. */
#pragma once

#include <event2/event.h>

#include "agent/mps/control.h"
#include "agent/mps/folder.h"
#include "base/error.h"
#include "base/spool_id.h"

enum mps_phase { MPS_STARTING, MPS_READY, MPS_ENDING, MPS_LOST };

/* A job of the daemon. */
struct mps_member {
    struct spool_id id;
    char *notices;
    bool is_waiting; // is called when the daemon is ready, or will not be
};

struct mps_server {
    pid_t pid;
    uint64_t start;
};

struct mps_daemon;

/* The callbacks and data that a daemon needs from its owner. */
struct mps_owner {
    void *arg;
    struct event_base *base;
    const char *program, *proc;
    int64_t answer_ms;
    /* Called for members that waited: they remain members (err NULL) or were removed. */
    void (*on_answer)(void *arg, const struct spool_id *ids, size_t count, const struct error *err);
    /* Its process has ended, or could not be started. The owner frees it now; there is no other reference. */
    void (*on_gone)(void *arg, struct mps_daemon *daemon);
};

struct mps_daemon {
    const struct mps_owner *owner;
    char name[MPS_NAME_SIZE];
    char *directory, *log;
    struct mps_record record; // its limits are those in force
    enum mps_phase phase;
    struct child *child;
    struct mps_limits wanted; // being sent
    struct mps_command *command;
    int64_t until_ms;
    struct error last;   // answer to the last try that failed; code 0: none
    struct event *timer; // of the next try, or for the end of the answer
    struct mps_member *members;
    size_t n_members;
    struct mps_server servers[MPS_SERVERS_MAX]; // seen last
    size_t n_servers;
};

/* Uses the folder `directory`, which may exist; starts no process yet. `owner` is borrowed. */
struct mps_daemon *mps_daemon_new(const struct mps_owner *owner, const char *name, const char *directory);
void mps_daemon_free(struct mps_daemon *daemon); // a process continues

/* Starts it with these limits. `record` of the daemon has its user and its GPU. */
int mps_daemon_start(
    struct mps_daemon *daemon, const struct mps_limits *limits, int cgroup_fd, struct error *err);

/* Takes over a running process, by `record`; takes ownership of the pidfd. */
void mps_daemon_adopt(struct mps_daemon *daemon, int pidfd);

/* Raises its limits to these; on_answer follows. */
void mps_daemon_raise(struct mps_daemon *daemon, const struct mps_limits *limits);

/* Ends it; on_gone follows, possibly before this returns. */
void mps_daemon_end(struct mps_daemon *daemon);

/* Detects servers that have ended, and notifies the jobs. */
void mps_daemon_check_servers(struct mps_daemon *daemon);

struct mps_member *mps_daemon_add(struct mps_daemon *daemon, const struct spool_id *id, const char *notices);
bool mps_daemon_drop(struct mps_daemon *daemon, const struct spool_id *id);

#define MPS_DAEMON_DIED                                                                                      \
    "the MPS control daemon of its GPU has died; processes that start to use CUDA from now on fail"

/* Logs a notice, and adds it to the job's file; NULL: it has none. */
void mps_daemon_notify(const struct spool_id *id, const char *notices, const char *text);

bool mps_server_is_listed(const struct mps_server *servers, size_t count, const struct mps_server *server);
