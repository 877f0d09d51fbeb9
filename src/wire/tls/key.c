/* SPDX-License-Identifier: MIT */
/*
 * A key is written once, into a new file that no other user can open at any time. A file with wider
 * permissions is refused, because it may have been read.
 */
#include "wire/tls/key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"

#define COMMON_NAME_MAX 256

void tls_key_freep(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

void tls_certificate_freep(X509 **certificate)
{
    X509_free(*certificate);
}

static void bio_freep(BIO **bio)
{
    (void)BIO_free(*bio);
}
#define _cleanup_bio_ _cleanup_(bio_freep)

int tls_fail(struct error *err, int code, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return error_set(err, code, "%s: %s", what, reason != NULL ? reason : "OpenSSL gives no reason");
}

static char *bio_text(BIO *bio)
{
    char *bytes = NULL;
    long length = BIO_get_mem_data(bio, &bytes);
    return xstrndup(length > 0 ? bytes : "", length > 0 ? (size_t)length : 0);
}

/* --- files --- */

/* A file left by a crash is incomplete and may be removed. */
static int write_secret(int dirfd, const char *name, const char *text, struct error *err)
{
    _cleanup_free_ char *unfinished = xasprintf("%s.new", name);
    (void)unlinkat(dirfd, unfinished, 0);
    _cleanup_close_ int fd =
        openat(dirfd, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && linkat(dirfd, unfinished, dirfd, name, 0) < 0)
        r = -errno;
    (void)unlinkat(dirfd, unfinished, 0);
    if (r == 0 && fsync(dirfd) < 0)
        r = -errno;
    return r < 0 ? error_set_errno(err, r, "cannot write the key %s", name) : 0;
}

static int make_key(int dirfd, const char *name, EVP_PKEY **ret, struct error *err)
{
    _cleanup_key_ EVP_PKEY *key = EVP_EC_gen("P-256");
    _cleanup_bio_ BIO *bio = BIO_new(BIO_s_secmem());
    if (key == NULL || bio == NULL || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return tls_fail(err, -EIO, "cannot create a key");
    char *text = bio_text(bio);
    int r = write_secret(dirfd, name, text, err);
    OPENSSL_cleanse(text, strlen(text));
    free(text);
    if (r == 0)
        *ret = take_ptr(key);
    return r;
}

static int check_mode(int fd, const char *name, struct error *err)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_set_errno(err, -errno, "cannot inspect the key %s", name);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
        (void)error_set(err, -EPERM, "other users can read the key %s (mode %04o, uid %u)", name,
            (unsigned)status.st_mode & 07777U, (unsigned)status.st_uid);
        return error_hint(err, "treat it as stolen: remove it, and join again or create new tokens");
    }
    return 0;
}

int tls_key_open(int dirfd, const char *name, EVP_PKEY **ret, struct error *err)
{
    _cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return make_key(dirfd, name, ret, err);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot open the key %s", name);
    int r = check_mode(fd, name, err);
    if (r < 0)
        return r;
    char text[TLS_PEM_MAX];
    ssize_t n = read(fd, text, sizeof(text));
    _cleanup_bio_ BIO *bio = BIO_new_mem_buf(text, n > 0 ? (int)n : 0);
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    OPENSSL_cleanse(text, sizeof(text));
    if (key == NULL)
        return tls_fail(err, -EBADMSG, "the key file is damaged");
    *ret = key;
    return 0;
}

int tls_certificate_load(int dirfd, const char *name, X509 **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int r = file_read(dirfd, name, TLS_PEM_MAX, &text);
    if (r < 0)
        return error_set_errno(err, r, "cannot read the certificate %s", name);
    return tls_certificate_parse(buffer_text(&text), ret, err);
}

int tls_certificate_save(int dirfd, const char *name, X509 *certificate, struct error *err)
{
    _cleanup_free_ char *text = tls_certificate_text(certificate);
    int r = file_write(dirfd, name, text, strlen(text), true);
    return r < 0 ? error_set_errno(err, r, "cannot write the certificate %s", name) : 0;
}

/* --- text --- */

char *tls_certificate_text(X509 *certificate)
{
    _cleanup_bio_ BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL || PEM_write_bio_X509(bio, certificate) != 1)
        return xstrdup("");
    return bio_text(bio);
}

int tls_certificate_parse(const char *pem, X509 **ret, struct error *err)
{
    _cleanup_bio_ BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    if (certificate == NULL)
        return tls_fail(err, -EBADMSG, "the certificate is unreadable");
    *ret = certificate;
    return 0;
}

char *tls_request_text(EVP_PKEY *key, const char *name)
{
    _cleanup_bio_ BIO *bio = BIO_new(BIO_s_mem());
    X509_REQ *request = X509_REQ_new();
    char *text = NULL;
    if (bio != NULL && request != NULL &&
        X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request), "CN", MBSTRING_UTF8,
            (const unsigned char *)name, -1, -1, 0) == 1 &&
        X509_REQ_set_pubkey(request, key) == 1 && X509_REQ_sign(request, key, EVP_sha256()) > 0 &&
        PEM_write_bio_X509_REQ(bio, request) == 1)
        text = bio_text(bio);
    X509_REQ_free(request);
    return text;
}

char *tls_certificate_name(const X509 *certificate)
{
    char name[COMMON_NAME_MAX];
    int length =
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
    return length > 0 && length < (int)sizeof(name) - 1 ? xstrdup(name) : NULL;
}

/* --- pins --- */

bool tls_pin_of_key(const EVP_PKEY *key, uint8_t pin[TLS_PIN_SIZE])
{
    unsigned char *der = NULL;
    unsigned length = 0;
    int size = i2d_PUBKEY(key, &der);
    bool is_made = size > 0 && EVP_Digest(der, (size_t)size, pin, &length, EVP_sha256(), NULL) == 1;
    OPENSSL_free(der);
    return is_made;
}

bool tls_pin_of_certificate(const X509 *certificate, uint8_t pin[TLS_PIN_SIZE])
{
    const EVP_PKEY *key = X509_get0_pubkey(certificate);
    return key != NULL && tls_pin_of_key(key, pin);
}

void tls_base64_write(const uint8_t *bytes, size_t length, char *text)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t group = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < length; i++) {
        group = group << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *text++ = alphabet[group >> (bits - 6) & 63];
    }
    if (bits > 0)
        *text++ = alphabet[group << (6 - bits) & 63];
    *text = '\0';
}

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool tls_base64_read(const char *text, uint8_t *bytes, size_t length)
{
    uint32_t group = 0;
    unsigned bits = 0;
    if (strlen(text) != (length * 8 + 5) / 6)
        return false;
    for (size_t i = 0; text[i] != '\0'; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0)
            return false;
        group = group << 6 | (uint32_t)digit;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        *bytes++ = (uint8_t)(group >> bits);
    }
    return (group & ((1U << bits) - 1)) == 0;
}

void tls_pin_text(const uint8_t pin[TLS_PIN_SIZE], char text[TLS_PIN_TEXT_SIZE])
{
    tls_base64_write(pin, TLS_PIN_SIZE, text);
}

bool tls_pin_parse(const char *text, uint8_t pin[TLS_PIN_SIZE])
{
    return tls_base64_read(text, pin, TLS_PIN_SIZE);
}
