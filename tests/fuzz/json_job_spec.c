/* SPDX-License-Identifier: MIT */
/* Any bytes as the body of a submit: refused with a sentence, or a spec that can be validated and encoded. */
#include "base/buffer.h"
#include "fuzz.h"
#include "wire/json_record.h"
#include "wire/json_spec.h"
#include "wire/json_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error err = { 0 };
    json_t *value = NULL;
    if (json_text_parse((const char *)bytes, length, &value, &err) < 0) {
        if (err.message[0] == '\0' || err.code >= 0)
            abort();
        return 0;
    }
    struct job_spec spec, again;
    int r = json_spec_read(value, &spec, &err);
    json_decref(value);
    if (r == 0 && job_spec_validate(&spec, &err) == 0) {
        struct buffer encoded = { 0 };
        record_encode(&job_spec_record, &spec, &encoded);
        if (record_decode(&job_spec_record, encoded.bytes, encoded.length, &again, &err) < 0)
            abort(); // what the API accepts, the store must be able to read
        if (job_spec_hash(&again) != job_spec_hash(&spec))
            abort();
        json_decref(json_record_write(&job_spec_record, &again));
        job_spec_clear(&again);
        buffer_clear(&encoded);
    }
    job_spec_clear(&spec);
    return 0;
}
