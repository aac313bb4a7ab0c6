/* Detect whether bytes are an image, text, or neither. */
#ifndef RECORDSMITH_CONTENT_H
#define RECORDSMITH_CONTENT_H

#include "message.h"

enum { CONTENT_RAW = 0, CONTENT_TEXT = 1, CONTENT_IMAGE = 2 };

/* RFC 3629: without overlong forms, surrogates, and code points above U+10FFFF. */
static int is_utf8(const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        uint8_t a = *p++;
        int more;
        uint8_t low = 0x80, high = 0xBF;
        if (a < 0x80) continue;
        if (a >= 0xC2 && a <= 0xDF) more = 1;
        else if (a >= 0xE0 && a <= 0xEF) {
            more = 2;
            if (a == 0xE0) low = 0xA0;
            if (a == 0xED) high = 0x9F;
        } else if (a >= 0xF0 && a <= 0xF4) {
            more = 3;
            if (a == 0xF0) low = 0x90;
            if (a == 0xF4) high = 0x8F;
        } else return 0;
        if (end - p < more || *p < low || *p > high) return 0;
        for (int i = 1; i < more; i++)
            if ((p[i] & 0xC0) != 0x80) return 0;
        p += more;
    }
    return 1;
}

static int content_of(span value) {
    const uint8_t *p = value.at;
    size_t size = (size_t)(value.end - value.at);
    if (size >= 12 && (!memcmp(p, "\xff\xd8\xff", 3) || !memcmp(p, "\x89PNG\r\n\x1a\n", 8) ||
                       !memcmp(p, "GIF87a", 6) || !memcmp(p, "GIF89a", 6) ||
                       (!memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4)) ||
                       !memcmp(p, "II*\0", 4) || !memcmp(p, "MM\0*", 4) ||
                       (!memcmp(p + 4, "ftypavi", 7) && (p[11] == 'f' || p[11] == 's')) ||
                       !memcmp(p, "\0\0\0\x0cJXL \r\n\x87\n", 12) ||
                       (!memcmp(p, "BM", 2) && !memcmp(p + 6, "\0\0\0\0", 4))))
        return CONTENT_IMAGE;
    const uint8_t *beyond_ascii = NULL;
    while (p < value.end) {
        if (value.end - p >= 8) {
            /* the top bit of a byte is set in one of the three if the first that is not plain
             * lies there: beyond ASCII, 127, or below the space */
            uint64_t word, ones = 0x0101010101010101ull;
            memcpy(&word, p, 8);
            if (!((word | (word + ones) | (word - 32 * ones)) & 128 * ones)) {
                p += 8;
                continue;
            }
        }
        const uint8_t *stop = value.end - p >= 8 ? p + 8 : value.end;
        for (; p < stop; p++) {
            if (*p == 127 || (*p < 32 && *p != '\t' && *p != '\n' && *p != '\r'))
                return CONTENT_RAW;
            if (*p >= 128 && !beyond_ascii) beyond_ascii = p;
        }
    }
    return !beyond_ascii || is_utf8(beyond_ascii, value.end) ? CONTENT_TEXT : CONTENT_RAW;
}

#endif
