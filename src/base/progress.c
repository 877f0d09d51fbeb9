/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

bool progress_parse(const char *text, size_t length, uint32_t *ret_ppm)
{
    bool is_percent = length > 0 && text[length - 1] == '%';
    uint64_t unit = is_percent ? (PROGRESS_WHOLE / 100) : PROGRESS_WHOLE, value = 0;
    size_t i = 0, n_digits = 0;
    length -= is_percent;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    for (; i < length && text[i] >= '0' && text[i] <= '9' && value <= PROGRESS_WHOLE; i++, n_digits++)
        value = value * 10 + (uint64_t)(text[i] - '0') * unit;
    if (i < length && text[i] == '.')
        for (i++; i < length && text[i] >= '0' && text[i] <= '9'; i++, n_digits++) {
            unit /= 10;
            value += (uint64_t)(text[i] - '0') * unit;
        }
    if (i < length || n_digits == 0 || value > PROGRESS_WHOLE)
        return false;
    *ret_ppm = (uint32_t)value;
    return true;
}
