/* SPDX-License-Identifier: MIT */
/* Any bytes as what a job says of itself: how they are cut into writes changes nothing, and what is kept is
 * within its bounds. The first byte chooses where they are cut. */
#include <string.h>

#include "base/progress.h"
#include "fuzz.h"
#include "shepherd/status_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct status_parser whole = { 0 }, parts = { 0 };
    if (length == 0)
        return 0;
    size_t step = (size_t)bytes[0] * bytes[0] + 1;
    const char *text = (const char *)bytes + 1;
    length--;
    bool is_saved = status_parser_add(&whole, 7, text, length), is_saved_too = false;
    for (size_t at = 0; at < length; at += step)
        is_saved_too |= status_parser_add(&parts, 7, text + at, length - at < step ? length - at : step);
    is_saved |= status_parser_end(&whole, 7);
    is_saved_too |= status_parser_end(&parts, 7);
    if (is_saved != is_saved_too || memcmp(&whole.latest, &parts.latest, sizeof(whole.latest)) != 0)
        abort();
    if (is_saved != (whole.latest.checkpointed_ms == 7))
        abort();
    if (strlen(whole.latest.status) > SPOOL_STATUS_MAX || strchr(whole.latest.status, '\n') != NULL ||
        whole.latest.progress_ppm > PROGRESS_WHOLE)
        abort();
    return 0;
}
