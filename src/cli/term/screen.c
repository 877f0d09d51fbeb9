/* SPDX-License-Identifier: MIT */
/*
 * Colour and width are decided here once, by the rules of no-color.org and bixense.com/clicolors. Widths of
 * characters come from wcwidth(3), which needs a UTF-8 locale; if the user's is not UTF-8, C.UTF-8 is used
 * for widths, and glyphs outside ASCII are not used.
 */
#include "cli/term/screen.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define WIDTH_MAX 4096

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0';
}

static bool wants_color(bool is_tty, enum color_when when)
{
    if (when != COLOR_AUTO)
        return when == COLOR_ALWAYS;
    if (is_set("NO_COLOR"))
        return false;
    const char *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");
    if (force != NULL && *force != '\0' && strcmp(force, "0") != 0)
        return true;
    return is_tty && term != NULL && strcmp(term, "dumb") != 0;
}

static size_t terminal_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    unsigned long asked = columns == NULL ? 0 : strtoul(columns, NULL, 10);
    if (asked > 0 && asked <= WIDTH_MAX)
        return asked;
    struct winsize size = { 0 };
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

void screen_open(struct screen *screen, int fd, enum color_when when)
{
    (void)setlocale(LC_CTYPE, "");
    bool is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (!is_utf8)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    bool is_tty = isatty(fd) == 1;
    *screen = (struct screen){
        .is_tty = is_tty,
        .has_color = wants_color(is_tty, when),
        .is_utf8 = is_utf8,
        .width = is_tty ? terminal_width(fd) : 0,
    };
}

const char *screen_dot(const struct screen *screen)
{
    return screen->is_utf8 ? "·" : "-";
}

const char *screen_spinner(const struct screen *screen, unsigned turn)
{
    static const char *const frames[] = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" };
    return screen->is_utf8 ? frames[turn % (sizeof(frames) / sizeof(frames[0]))] : "-";
}

const char *screen_color(const struct screen *screen, enum color color)
{
    static const char *const codes[COLORS] = { [COLOR_NONE] = "\033[0m",
        [COLOR_GREEN] = "\033[32m",
        [COLOR_YELLOW] = "\033[33m",
        [COLOR_RED] = "\033[31m",
        [COLOR_MAGENTA] = "\033[35m",
        [COLOR_DIM] = "\033[2m",
        [COLOR_BOLD] = "\033[1m" };
    return screen->has_color ? codes[color] : "";
}

/* Moves over one character; invalid bytes count as one column each. */
static size_t step(const char *text, size_t *ret_width)
{
    wchar_t wide = 0;
    mbstate_t state = { 0 };
    if (*text >= ' ' && *text <= '~') {
        *ret_width = 1;
        return 1;
    }
    size_t n = mbrtowc(&wide, text, strlen(text), &state);
    if (n == 0 || n > 4) {
        *ret_width = 1;
        return 1;
    }
    int width = wcwidth(wide);
    *ret_width = width < 0 ? 1 : (size_t)width;
    return n;
}

size_t screen_text_width(const char *text)
{
    size_t width = 0, one = 0;
    while (*text != '\0') {
        text += step(text, &one);
        width += one;
    }
    return width;
}

size_t screen_text_fit(const char *text, size_t width)
{
    size_t used = 0, one = 0;
    const char *p = text;
    while (*p != '\0') {
        size_t n = step(p, &one);
        if (used + one > width)
            break;
        used += one;
        p += n;
    }
    return (size_t)(p - text);
}

bool screen_size(unsigned *ret_rows, unsigned *ret_columns)
{
    struct winsize size = { 0 };
    if ((ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0) ||
        size.ws_row == 0 || size.ws_col == 0)
        return false;
    *ret_rows = size.ws_row;
    *ret_columns = size.ws_col;
    return true;
}
