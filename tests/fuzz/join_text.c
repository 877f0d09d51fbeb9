/* SPDX-License-Identifier: MIT */
/* Any text as what people paste behind --join, --controller and MGPU_HOST: refused, or read and written
 * alike. */
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
#include "wire/tls/join_token.h"

static void try_ticket(const char *text)
{
    struct join_ticket ticket;
    char token[JOIN_TOKEN_TEXT_SIZE];
    if (join_ticket_read(text, &ticket, NULL) < 0)
        return;
    join_token_write(&ticket.token, token);
    if (strcmp(strchr(text, '#') + 1, token) != 0)
        abort();
    join_ticket_clear(&ticket);
}

static void try_address(const char *text)
{
    struct address address = { 0 }, again = { 0 };
    if (address_parse(text, NODES_PORT, &address, NULL) < 0)
        return;
    char *written = address_text(&address);
    if (address_parse(written, NULL, &again, NULL) < 0 || strcmp(address.host, again.host) != 0 ||
        strcmp(address.port, again.port) != 0)
        abort();
    free(written);
    address_clear(&address);
    address_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = xstrndup((const char *)bytes, length);
    struct address address = { 0 };
    uint8_t pin[TLS_PIN_SIZE];
    try_ticket(text);
    try_address(text);
    (void)address_is_loopback(text);
    if (pinned_address_read(text, &address, pin, NULL) == 0)
        address_clear(&address);
    free(text);
    return 0;
}
