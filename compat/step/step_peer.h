/* SPDX-License-Identifier: MIT */
/* The slurmstepd of a node of the step, seen from srun. */
#pragma once

#include <poll.h>
#include <signal.h>

#include "compat/step/labels.h"
#include "compat/step/step.h"

struct step_peer {
    uint32_t node;
    pid_t pid; // slurmstepd itself, or the process connected to it; 0: none
    int fd;    // -1: none
    struct buffer in, out;
    size_t taken, sent;
    bool is_input_full; // its tasks have not read the input that it has
};

/* True if the tasks of the node are not children of srun. */
bool step_has_peer(const struct step *step, uint32_t node);

/*
 * Starts it with the tasks of the node. `mask`: the signals that are blocked in tasks. If one of their files
 * cannot be opened, none of them runs.
 */
int step_peer_start(struct step *step, uint32_t node, const sigset_t *mask, struct error *err);

/* Adds a frame, which is sent when slurmstepd can accept it. */
void step_peer_put(
    struct step_peer *peer, enum frame_type type, uint32_t task, const void *bytes, size_t length);

/* True if it has too much work to accept more input. */
bool step_peer_is_full(const struct step_peer *peer);

struct pollfd step_peer_source(const struct step_peer *peer);
void step_peer_serve(struct step *step, struct step_peer *peer, short events, struct labels *labels);
void step_peer_clear(struct step_peer *peer);

/* Data that the nodes exchange for MPI. */
void step_gather(struct step *step, const struct step_peer *from, const struct frame *frame);
void step_modex(struct step *step, const struct step_peer *from, const struct frame *frame);
void step_gathers_clear(struct step *step);
