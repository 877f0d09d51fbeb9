/* SPDX-License-Identifier: MIT */
#include "agent/gpu_report.h"

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct gpu_report, backend, 16),
    RECORD_FIELD(2, RECORD_U32, struct gpu_report, is_on, 0),
    RECORD_FIELD(3, RECORD_U32, struct gpu_report, is_final, 0),
    RECORD_FIELD(4, RECORD_STRING, struct gpu_report, text, 512),
    RECORD_FIELD(5, RECORD_STRING, struct gpu_report, fix, 512),
    RECORD_SUBLIST(6, struct gpu_report, gpus, NODE_GPUS_MAX, &gpu_state_record),
};
const struct record_type gpu_report_record = RECORD_TYPE(60, "GPU report", struct gpu_report, fields);
