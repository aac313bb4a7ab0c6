/* Cut a smaller JPEG out of a larger one, without decoding: the rows and columns of MCUs (minimum
 * coded units, the smallest parts of the scan) that a window of pixels needs.
 *
 * Where each row of MCUs consists of whole restart intervals ("tiles"), the cut has the tiles that
 * the window touches, renumbered. Otherwise it has whole rows: from the last row before the window
 * that begins with a restart interval, or the first, down to the last one needed. Then bytes may be
 * left over below the last row, as nothing shows where it ends.
 */
#ifndef RECORDSMITH_CUTTING_H
#define RECORDSMITH_CUTTING_H

#include "jpeg_header.h"

enum { CUT_DONE, CUT_NONE };

#define CUT_LEAST_SIDE 16 /* of scaled images: below this, different scales give the same size */

typedef struct {
    int top, left, height, width; /* of the cut, in pixels of the image */
    int tiles_across;             /* intervals in a row of the cut; 0 for whole rows */
    int row_tiles;                /* intervals in a row of the image, if tiles_across */
    int64_t first_interval;       /* the first one kept */
    int64_t interval_count;       /* how many to keep, or rows of tiles if tiles_across */
    size_t head_size, body_size;  /* bytes to write */
    size_t body;                  /* where the first kept interval begins */
} jpeg_cut;

/* The samplings that decoders interpolate in known ways, luma to chroma. */
static int cut_is_usual(const jpeg_header *header) {
    const jpeg_component *components = header->components;
    if (header->component_count == 1) return 1;
    if (header->component_count != 3) return 0;
    for (int i = 1; i < 3; i++)
        if (components[i].across != 1 || components[i].down != 1) return 0;
    int across = components[0].across, down = components[0].down;
    return across != 3 && down != 3 && (across < 4 || down == 1) && (down < 4 || across == 1);
}

static int cut_gcd(int a, int b) {
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The MCUs [*first, *last] that the pixels [start, stop) of a side need.
 *
 * Chroma is interpolated from its neighbours, so one sample more is needed on each side, and the
 * cut must not be so narrow that the decoder repeats chroma instead.
 */
static void cut_side(int start, int stop, int side, int unit, int ratio, int divisor, int *first,
                     int *last) {
    int margin = (ratio > 1 ? ratio * divisor : 0) + (divisor > 1 ? divisor : 0);
    int fewest = ratio > 1 ? 2 * ratio * divisor + 1 : 1, count = (side + unit - 1) / unit;
    if (divisor > 1 && fewest < CUT_LEAST_SIDE) fewest = CUT_LEAST_SIDE;
    *first = start > margin ? (start - margin) / unit : 0;
    *last = stop < side - margin ? (stop + margin - 1) / unit : count - 1;
    for (;;) {
        int end = *last == count - 1 ? side : (*last + 1) * unit;
        if (end - *first * unit >= fewest || (*first == 0 && *last == count - 1)) return;
        if (*first > 0) --*first;
        else ++*last;
    }
}

/* Which part to keep; 0 if that saves next to nothing. */
static int cut_plan(const jpeg_header *header, int top, int left, int height, int width,
                    int divisor, jpeg_cut *cut) {
    int interval = header->restart_interval, across = header->mcus_across, down = header->mcus_down;
    int first_row, last_row, first_column, last_column;
    if (!cut_is_usual(header)) return 0;
    if (top < 0 || left < 0 || height < 1 || width < 1) return 0;
    if (height > header->height - top || width > header->width - left) return 0;
    if (divisor < 1 || divisor > 8) return 0;
    cut_side(top, top + height, header->height, header->mcu_height, header->most_down, divisor,
             &first_row, &last_row);
    cut_side(left, left + width, header->width, header->mcu_width, header->most_across, divisor,
             &first_column, &last_column);
    if (interval && interval < across && across % interval == 0) {
        int first_tile = first_column / interval, last_tile = last_column / interval;
        cut->row_tiles = across / interval;
        cut->tiles_across = last_tile - first_tile + 1;
        first_column = first_tile * interval;
        last_column = (last_tile + 1) * interval - 1;
        cut->first_interval = (int64_t)first_row * cut->row_tiles + first_tile;
        cut->interval_count = last_row - first_row + 1;
    } else {
        int group = interval ? interval / cut_gcd(interval, across) : down;
        first_row -= first_row % group;
        first_column = 0;
        last_column = across - 1;
        cut->tiles_across = 0;
        cut->first_interval = cut->interval_count = 0;
        if (interval) {
            int64_t mcu_count = (int64_t)(last_row - first_row + 1) * across;
            cut->first_interval = (int64_t)first_row * across / interval;
            cut->interval_count = (mcu_count + interval - 1) / interval;
        }
    }
    cut->top = first_row * header->mcu_height;
    cut->left = first_column * header->mcu_width;
    cut->height = (last_row + 1) * header->mcu_height - cut->top;
    cut->width = (last_column + 1) * header->mcu_width - cut->left;
    if (cut->height > header->height - cut->top) cut->height = header->height - cut->top;
    if (cut->width > header->width - cut->left) cut->width = header->width - cut->left;
    int64_t kept = (int64_t)cut->height * cut->width;
    return kept <= (int64_t)header->height * header->width / 32 * 31;
}

/* The end of the interval that begins at `at`, whose number is given: where its marker begins, or
 * the end of the scan for the last one. 0 if another marker comes first.
 */
static size_t cut_interval_end(const uint8_t *data, size_t size, size_t at, int64_t number,
                               int is_last) {
    size_t end = jpeg_find_marker(data, size, at);
    if (is_last) return end;
    return end < size && data[end + 1] == (JPEG_RST0 | (number & 7)) ? end : 0;
}

/* Go through the intervals of a cut: write them renumbered to `out`, or only count if it is NULL.
 *
 * Returns how many bytes they take; 0 if the markers are not as they should be.
 */
static size_t cut_intervals(const uint8_t *data, size_t size, const jpeg_header *header,
                            const jpeg_cut *cut, uint8_t *out) {
    int64_t interval = header->restart_interval;
    int64_t mcu_count = (int64_t)header->mcus_across * header->mcus_down;
    int64_t last = (mcu_count + interval - 1) / interval - 1, number = cut->first_interval;
    int run = cut->tiles_across ? cut->tiles_across : 1;
    size_t at = cut->body, total = 0, kept = 0;
    for (int64_t i = 0; i < cut->interval_count; i++) {
        for (int j = 0; j < run; j++, number++) {
            size_t end = cut_interval_end(data, size, at, number, number == last);
            if (!end) return 0;
            if (kept++) { /* the marker before it */
                if (out) {
                    out[total] = 0xFF;
                    out[total + 1] = (uint8_t)(JPEG_RST0 | ((kept - 2) & 7));
                }
                total += 2;
            }
            if (out) memcpy(out + total, data + at, end - at);
            total += end - at;
            at = number == last ? end : end + 2;
        }
        if (i + 1 == cut->interval_count) break;
        for (int skipped = cut->row_tiles - cut->tiles_across; cut->tiles_across && skipped > 0;
             skipped--, number++) {
            size_t end = cut_interval_end(data, size, at, number, number == last);
            if (!end) return 0;
            at = end + 2;
        }
    }
    return total;
}

static int cut_keeps(uint8_t marker) {
    return marker == JPEG_SOF0 || marker == JPEG_SOF1 || marker == JPEG_DHT || marker == JPEG_DQT
        || marker == JPEG_DRI || marker == JPEG_SOS
        || marker == JPEG_APP0 || marker == JPEG_APP14; /* they decide the colour space */
}

/* Go through the header of a cut: write it to `out`, or only count if it is NULL. */
static size_t cut_head(const uint8_t *data, size_t size, const jpeg_header *header,
                       const jpeg_cut *cut, uint8_t *out) {
    jpeg_segment segment;
    size_t at = 2, total = 2;
    if (out) memcpy(out, data, 2);
    while (at < header->scan && jpeg_read_segment(data, size, at, &segment)) {
        size_t length = segment.stop - segment.start;
        if (cut_keeps(segment.marker)) {
            if (out) {
                memcpy(out + total, data + at, length);
                if (at == header->frame) {
                    uint8_t *sides = out + total + 5;
                    sides[0] = (uint8_t)(cut->height >> 8);
                    sides[1] = (uint8_t)cut->height;
                    sides[2] = (uint8_t)(cut->width >> 8);
                    sides[3] = (uint8_t)cut->width;
                }
            }
            total += length;
        }
        at = segment.stop;
    }
    return total;
}

/* Plan a cut and count its bytes, head_size + body_size + 2. CUT_NONE if the file cannot be cut, its
 * markers are damaged, or the cut would save next to nothing.
 */
static int cut_measure(const uint8_t *data, size_t size, int top, int left, int height, int width,
                       int divisor, jpeg_header *header, jpeg_cut *cut) {
    if (!jpeg_read_header(data, size, header)) return CUT_NONE;
    if (!cut_plan(header, top, left, height, width, divisor, cut)) return CUT_NONE;
    cut->head_size = cut_head(data, size, header, cut, NULL);
    cut->body = header->scan;
    if (!header->restart_interval) {
        cut->body_size = size - cut->body;
        return CUT_DONE;
    }
    for (int64_t number = 0; number < cut->first_interval; number++) {
        size_t end = cut_interval_end(data, size, cut->body, number, 0);
        if (!end) return CUT_NONE;
        cut->body = end + 2;
    }
    cut->body_size = cut_intervals(data, size, header, cut, NULL);
    return cut->body_size ? CUT_DONE : CUT_NONE;
}

/* Write what cut_measure has counted. */
static void cut_write(const uint8_t *data, size_t size, const jpeg_header *header,
                      const jpeg_cut *cut, uint8_t *out) {
    out += cut_head(data, size, header, cut, out);
    if (header->restart_interval) cut_intervals(data, size, header, cut, out);
    else memcpy(out, data + cut->body, cut->body_size);
    out[cut->body_size] = 0xFF;
    out[cut->body_size + 1] = JPEG_EOI;
}

#endif
