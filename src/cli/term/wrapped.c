/* SPDX-License-Identifier: MIT */
/* A word that is wider than the screen is left to the terminal. Without a width, lines are not wrapped. */
#include "cli/term/wrapped.h"

#include <string.h>

#include "base/memory.h"

void wrapped_print(const struct screen *screen, const char *text, size_t column, size_t indent, FILE *out)
{
    for (const char *word = text; *word != '\0';) {
        size_t blanks = strspn(word, " "), length = strcspn(word + blanks, " ");
        _cleanup_free_ char *shown = xstrndup(word, blanks + length);
        size_t width = screen_text_width(shown);
        if (screen->width != 0 && column > indent && column + width > screen->width) {
            (void)fprintf(out, "\n%*s%s", (int)indent, "", shown + blanks);
            column = indent + width - blanks;
        } else {
            (void)fputs(shown, out);
            column += width;
        }
        word += blanks + length;
    }
    (void)fputc('\n', out);
}
