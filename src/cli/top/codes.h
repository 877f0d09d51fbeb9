/* SPDX-License-Identifier: MIT */
/* Keys of `mgpu top` as numbers: characters are their code points. */
#pragma once

/* Other keys, above all code points. */
enum {
    TOP_KEY_UP = 0x110000,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_BACKSPACE,
    TOP_KEY_F1,
    TOP_KEY_F2,
    TOP_KEY_F9,
    TOP_KEY_F10,
};
#define TOP_KEY_TAB    '\t'
#define TOP_KEY_ENTER  '\n'
#define TOP_KEY_ESCAPE 27
