/* SPDX-License-Identifier: MIT */
/* The result of a test of parking on a node (mgpu gpu test --park): in the API and in the store. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"
#include "base/strings.h"

#define PARK_PROOF_MODELS_MAX 4096U // bytes of all models
#define PARK_PROOF_TEXT_MAX   512U
#define PARK_PROOF_TIME_MAX   86400000LL // milliseconds of one save or return

/* Return to a different GPU of the node than the memory was saved on. */
enum park_elsewhere {
    PARK_ELSEWHERE_UNTRIED, // the node has no other GPU of the model
    PARK_ELSEWHERE_PASSED,
    PARK_ELSEWHERE_REFUSED, // a job returns to its own GPU alone
    PARK_ELSEWHERES,
};

struct park_proof {
    char *driver;          // the version that the node had
    struct strings models; // of the GPUs that were tested
    bool passed;           // memory was restored unchanged, for each model
    bool wrong;            // it was not; otherwise, if not passed, nothing was parked
    char *text;            // why it has not passed; NULL: it has
    char *elsewhere;       // park_elsewhere_name()
    /* The least and the most memory that was parked, in one job on one GPU, and the times. */
    uint64_t least_bytes, most_bytes;
    int64_t least_save_ms, least_load_ms, most_save_ms, most_load_ms;
    /* Set by mgpud. */
    int64_t tested_ms; // wall clock
    uint32_t uid;      // of the operator who tested
};

/* The request contains only what its client knows. */
extern const struct record_type park_proof_request_record;
extern const struct record_type park_proof_record;

/* "untried", "passed", "refused". */
const char *park_elsewhere_name(enum park_elsewhere elsewhere);
/* PARK_ELSEWHERES if there is none of that name. */
enum park_elsewhere park_elsewhere_find(const char *name);

/* Checks the members of a request; sets a sentence with the value of an invalid one. */
int park_proof_check(const struct park_proof *proof, struct error *err);

/* By the two points measured: how long it takes to save (or to load) so much memory. 0: not known. */
int64_t park_proof_save_ms(const struct park_proof *proof, uint64_t bytes);
int64_t park_proof_load_ms(const struct park_proof *proof, uint64_t bytes);

/* Bytes per second for the largest parked memory; 0: not known. */
double park_proof_save_rate(const struct park_proof *proof);
double park_proof_load_rate(const struct park_proof *proof);
