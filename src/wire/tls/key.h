/* SPDX-License-Identifier: MIT */
/* Keys and certificates, and their files. All keys are P-256. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

#define TLS_PIN_SIZE      32
#define TLS_PIN_TEXT_SIZE 44    // base64url without padding, with the NUL
#define TLS_PEM_MAX       16384 // bytes of a key, a certificate or a request

/* Loads the key in the file NAME; creates it if missing, with mode 0600 and durably. A file that other users
 * may read is refused (-EPERM). */
int tls_key_open(int dirfd, const char *name, EVP_PKEY **ret, struct error *err);

int tls_certificate_load(int dirfd, const char *name, X509 **ret, struct error *err);
int tls_certificate_save(int dirfd, const char *name, X509 *certificate, struct error *err);

/* As PEM; the caller frees it. */
char *tls_certificate_text(X509 *certificate);
int tls_certificate_parse(const char *pem, X509 **ret, struct error *err);

/* A certificate request for this key, as PEM; the caller frees it. NULL on failure. */
char *tls_request_text(EVP_PKEY *key, const char *name);

/* SHA-256 of the public key with its type (SubjectPublicKeyInfo), known as a pin (curl). */
bool tls_pin_of_key(const EVP_PKEY *key, uint8_t pin[TLS_PIN_SIZE]);
bool tls_pin_of_certificate(const X509 *certificate, uint8_t pin[TLS_PIN_SIZE]);

/* Converts the pin to text and back; false if the text is no pin. */
void tls_pin_text(const uint8_t pin[TLS_PIN_SIZE], char text[TLS_PIN_TEXT_SIZE]);
bool tls_pin_parse(const char *text, uint8_t pin[TLS_PIN_SIZE]);

/* The subject's common name, NULL if it has none. The caller frees it. */
char *tls_certificate_name(const X509 *certificate);

/* "WHAT: reason from OpenSSL". */
int tls_fail(struct error *err, int code, const char *what);

void tls_key_freep(EVP_PKEY **key);
void tls_certificate_freep(X509 **certificate);
#define _cleanup_key_         _cleanup_(tls_key_freep)
#define _cleanup_certificate_ _cleanup_(tls_certificate_freep)

/* Encodes bytes as base64url without padding; `text` must hold 4 * (length + 2) / 3 + 1. */
void tls_base64_write(const uint8_t *bytes, size_t length, char *text);
/* Decodes exactly `length` bytes; false if the text is not their encoding. */
bool tls_base64_read(const char *text, uint8_t *bytes, size_t length);
