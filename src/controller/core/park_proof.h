/* SPDX-License-Identifier: MIT */
/* Whether parking was tried on a node, and what came of it: kept in park.c, made in concerns/park_proof.c. */
#pragma once

#include "controller/core/core.h"
#include "wire/park_proof.h"

#define CORE_PARK_PROOF "park-proof" // kind of the rows of the store

/* What the test of a node is worth now. */
enum park_proof_state {
    PARK_PROOF_NONE,     // nothing can be parked there, or the node is not known
    PARK_PROOF_UNTESTED, // nobody has tested it
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

/* True if parking was tried on this node with the driver that it has now, and memory came back as it was: the
 * scheduler may park jobs there by its own rule. */
bool core_parking_is_proven(const struct core *core, const char *node);

/* True if memory came back as it was on another GPU, too. */
bool core_return_elsewhere_is_proven(const struct core *core, const char *node);

/* The longest that a test which passed took to save and to return the most memory; 0: none has passed. */
int64_t core_measured_park_ms(const struct core *core);

/* Replaces an earlier one of that node. `proof` is taken over; the result as of core_park_proof(). */
const struct park_proof *core_keep_park_proof(struct core *core, const char *node, struct park_proof *proof);
void core_init_park_proofs(struct core *core);
void core_free_park_proofs(struct core *core);

/* Keeps what an operator has found. The driver must be the one that the node has: -EALREADY if it is
 * another, -ENOENT without such a node. `proof` is copied. */
void core_set_park_proof(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const struct park_proof *proof, void *request);

/* The node is removed. */
void core_forget_park_proof(struct core *core, const char *node);
