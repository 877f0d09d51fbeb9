/* SPDX-License-Identifier: MIT */
/* How long jobs that ended are kept: a sweep from time to time, which the store's thread does in small steps.
 */
#pragma once

struct controller;
struct retention;

/* Sweeps by the controller's options, on its loop and in its store, until it is freed. */
struct retention *retention_new(struct controller *controller);
/* The options may be others now: the next sweep comes soon, or never if nothing is to leave. */
void retention_replan(struct retention *retention);

void retention_free(struct retention *retention); // before the store is closed; NULL is fine
