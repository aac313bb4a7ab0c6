/* The header of a JPEG whose image is one Huffman-coded scan (ITU T.81, annex B): baseline or
 * extended sequential, 8 bits, one component or all of them interleaved. Other files, and files with
 * anything unusual between their segments, are left to a decoder.
 */
#ifndef RECORDSMITH_JPEG_HEADER_H
#define RECORDSMITH_JPEG_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    JPEG_SOF0 = 0xC0, JPEG_SOF1 = 0xC1, JPEG_DHT = 0xC4, JPEG_RST0 = 0xD0, JPEG_RST7 = 0xD7,
    JPEG_SOI = 0xD8, JPEG_EOI = 0xD9, JPEG_SOS = 0xDA, JPEG_DQT = 0xDB, JPEG_DRI = 0xDD,
    JPEG_APP0 = 0xE0, JPEG_APP14 = 0xEE, JPEG_APP15 = 0xEF, JPEG_COM = 0xFE
};

#define JPEG_MAX_COMPONENTS 4
#define JPEG_BLOCK 8 /* pixels a side */

/* data[start:stop], marker and length included */
typedef struct { uint8_t marker; size_t start, stop; } jpeg_segment;

typedef struct {
    uint8_t id, across, down, dc_table, ac_table; /* sampling factors, numbers of Huffman tables */
} jpeg_component;

typedef struct {
    size_t frame;             /* where the segment of the frame header begins */
    size_t scan;              /* where the entropy-coded data begins */
    int height, width;        /* in pixels, not 0 */
    int component_count;      /* 1, 3 or 4 */
    jpeg_component components[JPEG_MAX_COMPONENTS];
    int most_across, most_down; /* the largest sampling factors; 1 for a single component */
    int mcu_height, mcu_width;  /* in pixels */
    int mcus_down, mcus_across;
    int restart_interval;       /* in MCUs; 0 for none */
} jpeg_header;

static inline int jpeg_uint16(const uint8_t *at) { return at[0] << 8 | at[1]; }

static inline int jpeg_is_restart(uint8_t marker) { return (marker & 0xF8) == JPEG_RST0; }

/* The segment at `at`; 0 if what is there is not a whole segment. */
static int jpeg_read_segment(const uint8_t *data, size_t size, size_t at, jpeg_segment *out) {
    if (at > size || size - at < 4 || data[at] != 0xFF) return 0;
    uint8_t marker = data[at + 1];
    if (marker < 0xC0 || (marker >= JPEG_RST0 && marker <= JPEG_EOI) || marker == 0xFF) return 0;
    size_t length = (size_t)jpeg_uint16(data + at + 2);
    if (length < 2 || length > size - at - 2) return 0;
    out->marker = marker;
    out->start = at;
    out->stop = at + 2 + length;
    return 1;
}

static int jpeg_read_frame(const uint8_t *data, const jpeg_segment *segment, jpeg_header *header) {
    const uint8_t *at = data + segment->start + 4;
    size_t length = segment->stop - segment->start - 4;
    if (length < 6 || at[0] != 8 || header->frame) return 0;
    header->frame = segment->start;
    header->height = jpeg_uint16(at + 1);
    header->width = jpeg_uint16(at + 3);
    int count = header->component_count = at[5];
    if (!header->height || !header->width) return 0;
    if ((count != 1 && count != 3 && count != 4) || length != 6 + 3 * (size_t)count) return 0;
    for (int i = 0; i < count; i++) {
        jpeg_component *component = &header->components[i];
        component->id = at[6 + 3 * i];
        component->across = at[7 + 3 * i] >> 4;
        component->down = at[7 + 3 * i] & 15;
        if (component->across < 1 || component->across > 4) return 0;
        if (component->down < 1 || component->down > 4) return 0;
        for (int j = 0; j < i; j++)
            if (header->components[j].id == component->id) return 0;
        if (component->across > header->most_across) header->most_across = component->across;
        if (component->down > header->most_down) header->most_down = component->down;
    }
    if (count == 1) { /* not interleaved: an MCU is one block (A.2.2) */
        header->components[0].across = header->components[0].down = 1;
        header->most_across = header->most_down = 1;
    }
    header->mcu_width = JPEG_BLOCK * header->most_across;
    header->mcu_height = JPEG_BLOCK * header->most_down;
    header->mcus_across = (header->width + header->mcu_width - 1) / header->mcu_width;
    header->mcus_down = (header->height + header->mcu_height - 1) / header->mcu_height;
    return 1;
}

static int jpeg_read_scan(const uint8_t *data, const jpeg_segment *segment, jpeg_header *header) {
    const uint8_t *at = data + segment->start + 4;
    int count = header->component_count;
    if (!header->frame || segment->stop - segment->start != 8 + 2 * (size_t)count) return 0;
    if (at[0] != count) return 0;
    for (int i = 0; i < count; i++) {
        jpeg_component *component = &header->components[i];
        if (at[1 + 2 * i] != component->id) return 0;
        component->dc_table = at[2 + 2 * i] >> 4;
        component->ac_table = at[2 + 2 * i] & 15;
        if (component->dc_table > 3 || component->ac_table > 3) return 0;
    }
    at += 1 + 2 * count;
    if (at[0] != 0 || at[1] != 63 || at[2] != 0) return 0; /* all coefficients in one pass */
    header->scan = segment->stop;
    return 1;
}

/* Read the header up to the entropy-coded data; 0 if the file is of another kind, or unusual. */
static int jpeg_read_header(const uint8_t *data, size_t size, jpeg_header *header) {
    jpeg_segment segment;
    size_t at = 2;
    memset(header, 0, sizeof(*header));
    if (size < 2 || data[0] != 0xFF || data[1] != JPEG_SOI) return 0;
    while (jpeg_read_segment(data, size, at, &segment)) {
        uint8_t marker = segment.marker;
        if (marker == JPEG_SOS) return jpeg_read_scan(data, &segment, header);
        if (marker == JPEG_SOF0 || marker == JPEG_SOF1) {
            if (!jpeg_read_frame(data, &segment, header)) return 0;
        } else if (marker == JPEG_DRI) {
            if (segment.stop - segment.start != 6) return 0;
            header->restart_interval = jpeg_uint16(data + segment.start + 4);
        } else if (marker != JPEG_DHT && marker != JPEG_DQT && marker != JPEG_COM
                   && !(marker >= JPEG_APP0 && marker <= JPEG_APP15)) {
            return 0;
        }
        at = segment.stop;
    }
    return 0;
}

/* Whether decoders interpolate chroma in known ways, so that parts can be cut out. */
static int jpeg_is_usual(const jpeg_header *header) {
    const jpeg_component *components = header->components;
    if (header->component_count == 1) return 1;
    if (header->component_count != 3) return 0;
    for (int i = 1; i < 3; i++)
        if (components[i].across != 1 || components[i].down != 1) return 0;
    int across = components[0].across, down = components[0].down;
    return across != 3 && down != 3 && (across < 4 || down == 1) && (down < 4 || across == 1);
}

#endif
