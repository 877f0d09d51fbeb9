/* SPDX-License-Identifier: MIT */
/* Tests of parking on nodes, and their results: used in park.c, recorded in concerns/park_proof.c. */
#pragma once

#include "controller/core/core.h"
#include "wire/park_proof.h"

#define CORE_PARK_PROOF "park-proof" // kind of the rows of the store

/* The current validity of a node's test. */
enum park_proof_state {
    PARK_PROOF_NONE,     // nothing can be parked there, or the node is not known
    PARK_PROOF_UNTESTED, // not tested yet
    PARK_PROOF_OUTDATED, // it has another driver now, or GPUs of another model
    PARK_PROOF_FAILED,
    PARK_PROOF_PASSED,
    PARK_PROOF_STATES,
};

/* "none", "untested", "outdated", "failed", "passed". */
const char *park_proof_state_name(enum park_proof_state state);

/* The last test of this node, whatever it is worth; NULL: there was none. Valid until the next input. */
const struct park_proof *core_park_proof(const struct core *core, const char *node);

enum park_proof_state core_park_proof_state(const struct core *core, const char *node);

/* True if a test with the node's current driver has restored memory unchanged: the scheduler may park jobs
 * there by its own rule. */
bool core_parking_is_proven(const struct core *core, const char *node);

/* True if memory was also restored unchanged on another GPU. */
bool core_return_elsewhere_is_proven(const struct core *core, const char *node);

/* The longest that a test which passed took to save and to return the most memory; 0: none has passed. */
int64_t core_measured_park_ms(const struct core *core);

/* Replaces an earlier one of that node. `proof` is taken over; the result as of core_park_proof(). */
const struct park_proof *core_keep_park_proof(struct core *core, const char *node, struct park_proof *proof);
void core_init_park_proofs(struct core *core);
void core_free_park_proofs(struct core *core);

/* Records the result of an operator's test. The driver must be the current one of the node, else -EALREADY;
 * -ENOENT without such a node. `proof` is copied. */
void core_set_park_proof(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const struct park_proof *proof, void *request);

/* The node is removed. */
void core_forget_park_proof(struct core *core, const char *node);
