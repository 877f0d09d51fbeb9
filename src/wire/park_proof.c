/* SPDX-License-Identifier: MIT */
/* A save has a part that depends on the size and one that does not: a line through two points has both. */
#include "wire/park_proof.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "wire/message.h"

#define PROOF_FIELDS                                                                                         \
    RECORD_FIELD(1, RECORD_STRING, struct park_proof, driver, NODE_DRIVER_MAX),                              \
        RECORD_FIELD(2, RECORD_STRINGS, struct park_proof, models, PARK_PROOF_MODELS_MAX),                   \
        RECORD_FIELD(3, RECORD_BOOL, struct park_proof, passed, 0),                                          \
        RECORD_FIELD(4, RECORD_BOOL, struct park_proof, wrong, 0),                                           \
        RECORD_FIELD(5, RECORD_STRING, struct park_proof, text, PARK_PROOF_TEXT_MAX),                        \
        RECORD_FIELD(6, RECORD_STRING, struct park_proof, elsewhere, 16),                                    \
        RECORD_FIELD(7, RECORD_U64, struct park_proof, least_bytes, 0),                                      \
        RECORD_FIELD(8, RECORD_I64, struct park_proof, least_save_ms, 0),                                    \
        RECORD_FIELD(9, RECORD_I64, struct park_proof, least_load_ms, 0),                                    \
        RECORD_FIELD(10, RECORD_U64, struct park_proof, most_bytes, 0),                                      \
        RECORD_FIELD(11, RECORD_I64, struct park_proof, most_save_ms, 0),                                    \
        RECORD_FIELD(12, RECORD_I64, struct park_proof, most_load_ms, 0)

static const struct record_field request_fields[] = { PROOF_FIELDS };
const struct record_type park_proof_request_record =
    RECORD_TYPE(267, "test of parking", struct park_proof, request_fields);

static const struct record_field fields[] = {
    PROOF_FIELDS,
    RECORD_FIELD(20, RECORD_TIME, struct park_proof, tested_ms, 0),
    RECORD_FIELD(21, RECORD_U32, struct park_proof, uid, 0),
};
const struct record_type park_proof_record = RECORD_TYPE(542, "proof of parking", struct park_proof, fields);

static const char *const elsewheres[PARK_ELSEWHERES] = {
    [PARK_ELSEWHERE_UNTRIED] = "untried",
    [PARK_ELSEWHERE_PASSED] = "passed",
    [PARK_ELSEWHERE_REFUSED] = "refused",
};

const char *park_elsewhere_name(enum park_elsewhere elsewhere)
{
    return (size_t)elsewhere < PARK_ELSEWHERES ? elsewheres[elsewhere] : "untried";
}

enum park_elsewhere park_elsewhere_find(const char *name)
{
    size_t i = 0;
    while (i < PARK_ELSEWHERES && !text_equal(elsewheres[i], name))
        i++;
    return (enum park_elsewhere)i;
}

static int check_time(const char *name, int64_t ms, struct error *err)
{
    if (ms >= 0 && ms <= PARK_PROOF_TIME_MAX)
        return 0;
    return error_set(err, -ERANGE, "%s: %" PRId64 " is outside 0 to %lld", name, ms, PARK_PROOF_TIME_MAX);
}

static int check_figures(const struct park_proof *proof, struct error *err)
{
    const struct {
        const char *name;
        int64_t ms;
    } times[] = { { "least_save_ms", proof->least_save_ms }, { "least_load_ms", proof->least_load_ms },
        { "most_save_ms", proof->most_save_ms }, { "most_load_ms", proof->most_load_ms } };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(times) / sizeof(times[0]); i++)
        r = check_time(times[i].name, times[i].ms, err);
    if (r < 0)
        return r;
    if (proof->most_bytes < proof->least_bytes)
        return error_set(err, -EINVAL, "most_bytes: %" PRIu64 " is less than least_bytes, %" PRIu64,
            proof->most_bytes, proof->least_bytes);
    return proof->passed && proof->least_bytes == 0
               ? error_set(err, -EINVAL, "least_bytes is 0, but a test that passed has parked memory")
               : 0;
}

int park_proof_check(const struct park_proof *proof, struct error *err)
{
    if (proof->driver == NULL || *proof->driver == '\0')
        return error_set(err, -EINVAL, "driver is missing: the version that was tested");
    if (proof->models.count == 0)
        return error_set(err, -EINVAL, "models is missing: those of the GPUs that were tested");
    if (proof->passed && (proof->wrong || proof->text != NULL))
        return error_set(err, -EINVAL, "a test that passed has neither text nor wrong");
    if (!proof->passed && (proof->text == NULL || *proof->text == '\0'))
        return error_set(err, -EINVAL, "text is missing: why it has not passed");
    if (proof->elsewhere != NULL && park_elsewhere_find(proof->elsewhere) == PARK_ELSEWHERES) {
        (void)error_set(err, -EINVAL, "elsewhere: unknown value '%.16s'", proof->elsewhere);
        return error_hint(err, "untried, passed or refused");
    }
    return check_figures(proof, err);
}

static int64_t on_line(const struct park_proof *proof, int64_t least_ms, int64_t most_ms, uint64_t bytes)
{
    if (proof->most_bytes == 0)
        return 0;
    double span = (double)(proof->most_bytes - proof->least_bytes);
    if (span <= 0 || most_ms <= least_ms)
        return (int64_t)((double)most_ms * (double)bytes / (double)proof->most_bytes);
    double slope = (double)(most_ms - least_ms) / span;
    double ms = (double)least_ms + slope * ((double)bytes - (double)proof->least_bytes);
    return ms > 0 ? (int64_t)ms : 0;
}

int64_t park_proof_save_ms(const struct park_proof *proof, uint64_t bytes)
{
    return on_line(proof, proof->least_save_ms, proof->most_save_ms, bytes);
}

int64_t park_proof_load_ms(const struct park_proof *proof, uint64_t bytes)
{
    return on_line(proof, proof->least_load_ms, proof->most_load_ms, bytes);
}

static double rate(uint64_t bytes, int64_t ms)
{
    return ms > 0 ? (double)bytes * 1000 / (double)ms : 0;
}

double park_proof_save_rate(const struct park_proof *proof)
{
    return rate(proof->most_bytes, proof->most_save_ms);
}

double park_proof_load_rate(const struct park_proof *proof)
{
    return rate(proof->most_bytes, proof->most_load_ms);
}
