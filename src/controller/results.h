/* SPDX-License-Identifier: MIT */
/* The results of the store as events of the loop. */
#pragma once

struct controller;
struct results;

/* The controller has a loop and a store. */
struct results *results_new(struct controller *controller);
void results_free(struct results *results); // NULL is allowed
