/* SPDX-License-Identifier: MIT */
/*
 * Only the eight colours of every terminal are used. Words and symbols repeat their meaning, so nothing is
 * lost in `mono` or for colour-blind users.
 */
#include <string.h>

#include "cli/top/look.h"

const struct theme top_themes[] = {
    { "default", "the terminal's eight colours",
        {
            [LOOK_PLAIN] = { PAINT_NONE },
            [LOOK_DIM] = { PAINT_NONE, .is_dim = true },
            [LOOK_BORDER] = { PAINT_NONE, .is_dim = true },
            [LOOK_FOCUS] = { PAINT_CYAN },
            [LOOK_TITLE] = { PAINT_NONE, .is_bold = true },
            [LOOK_HEADER] = { PAINT_CYAN },
            [LOOK_KEY] = { PAINT_CYAN, .is_bold = true },
            [LOOK_GOOD] = { PAINT_GREEN },
            [LOOK_WAIT] = { PAINT_YELLOW },
            [LOOK_BAD] = { PAINT_RED },
            [LOOK_HELD] = { PAINT_MAGENTA },
            [LOOK_WARN] = { PAINT_YELLOW, .is_bold = true },
            [LOOK_LOW] = { PAINT_BLUE },
            [LOOK_MIDDLE] = { PAINT_GREEN },
            [LOOK_HIGH] = { PAINT_GREEN, .is_bold = true },
            [LOOK_MEMORY] = { PAINT_CYAN },
            [LOOK_INPUT] = { PAINT_NONE, .is_reverse = true },
        } },
    { "mono", "no colours, only bold and dim",
        {
            [LOOK_PLAIN] = { PAINT_NONE },
            [LOOK_DIM] = { PAINT_NONE, .is_dim = true },
            [LOOK_BORDER] = { PAINT_NONE, .is_dim = true },
            [LOOK_FOCUS] = { PAINT_NONE, .is_bold = true },
            [LOOK_TITLE] = { PAINT_NONE, .is_bold = true },
            [LOOK_HEADER] = { PAINT_NONE, .is_bold = true },
            [LOOK_KEY] = { PAINT_NONE, .is_bold = true },
            [LOOK_GOOD] = { PAINT_NONE },
            [LOOK_WAIT] = { PAINT_NONE },
            [LOOK_BAD] = { PAINT_NONE, .is_bold = true },
            [LOOK_HELD] = { PAINT_NONE },
            [LOOK_WARN] = { PAINT_NONE, .is_bold = true },
            [LOOK_LOW] = { PAINT_NONE },
            [LOOK_MIDDLE] = { PAINT_NONE },
            [LOOK_HIGH] = { PAINT_NONE },
            [LOOK_MEMORY] = { PAINT_NONE },
            [LOOK_INPUT] = { PAINT_NONE, .is_reverse = true },
        } },
    { "high-contrast", "bright, nothing dim",
        {
            [LOOK_PLAIN] = { PAINT_WHITE, .is_bold = true },
            [LOOK_DIM] = { PAINT_WHITE },
            [LOOK_BORDER] = { PAINT_WHITE },
            [LOOK_FOCUS] = { PAINT_YELLOW, .is_bold = true },
            [LOOK_TITLE] = { PAINT_WHITE, .is_bold = true },
            [LOOK_HEADER] = { PAINT_CYAN, .is_bold = true },
            [LOOK_KEY] = { PAINT_YELLOW, .is_bold = true },
            [LOOK_GOOD] = { PAINT_GREEN, .is_bold = true },
            [LOOK_WAIT] = { PAINT_YELLOW, .is_bold = true },
            [LOOK_BAD] = { PAINT_RED, .is_bold = true },
            [LOOK_HELD] = { PAINT_MAGENTA, .is_bold = true },
            [LOOK_WARN] = { PAINT_YELLOW, .is_bold = true, .is_reverse = true },
            [LOOK_LOW] = { PAINT_CYAN, .is_bold = true },
            [LOOK_MIDDLE] = { PAINT_GREEN, .is_bold = true },
            [LOOK_HIGH] = { PAINT_WHITE, .is_bold = true },
            [LOOK_MEMORY] = { PAINT_CYAN, .is_bold = true },
            [LOOK_INPUT] = { PAINT_WHITE, .is_bold = true, .is_reverse = true },
        } },
    { "colour-blind", "blue and yellow instead of green and red",
        {
            [LOOK_PLAIN] = { PAINT_NONE },
            [LOOK_DIM] = { PAINT_NONE, .is_dim = true },
            [LOOK_BORDER] = { PAINT_NONE, .is_dim = true },
            [LOOK_FOCUS] = { PAINT_BLUE, .is_bold = true },
            [LOOK_TITLE] = { PAINT_NONE, .is_bold = true },
            [LOOK_HEADER] = { PAINT_BLUE, .is_bold = true },
            [LOOK_KEY] = { PAINT_BLUE, .is_bold = true },
            [LOOK_GOOD] = { PAINT_BLUE, .is_bold = true },
            [LOOK_WAIT] = { PAINT_WHITE },
            [LOOK_BAD] = { PAINT_YELLOW, .is_bold = true },
            [LOOK_HELD] = { PAINT_CYAN },
            [LOOK_WARN] = { PAINT_YELLOW, .is_bold = true, .is_reverse = true },
            [LOOK_LOW] = { PAINT_CYAN },
            [LOOK_MIDDLE] = { PAINT_BLUE },
            [LOOK_HIGH] = { PAINT_BLUE, .is_bold = true },
            [LOOK_MEMORY] = { PAINT_YELLOW },
            [LOOK_INPUT] = { PAINT_NONE, .is_reverse = true },
        } },
    { 0 },
};

int top_theme_find(const char *name)
{
    for (int i = 0; top_themes[i].name != NULL; i++)
        if (strcmp(top_themes[i].name, name) == 0)
            return i;
    return -1;
}

enum look look_of_load(double part)
{
    return part < 0.3 ? LOOK_LOW : part < 0.8 ? LOOK_MIDDLE : LOOK_HIGH;
}
