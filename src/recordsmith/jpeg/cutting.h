/* Cut a smaller JPEG out of a larger one, without decoding: the rows and columns of MCUs (minimum
 * coded units, the smallest parts of the scan) that a window of pixels needs. There are four ways:
 *
 * - Tiles, where each row of MCUs consists of whole restart intervals: those that the window touches
 *   are copied, and renumbered.
 * - Rows: whole rows, from the last one before the window that begins with a restart interval, or
 *   the first, down to the last one needed. Bytes may be left over below, as nothing shows where the
 *   last row ends.
 * - Lower rows, where there are no intervals: the Huffman codes of the rows above the window are
 *   skipped, which takes less than half as long as decoding them. All bits below are copied.
 * - Codes: those up to the window are skipped, and those of its MCUs are copied.
 */
#ifndef RECORDSMITH_CUTTING_H
#define RECORDSMITH_CUTTING_H

#include "jpeg_scan.h"

enum { CUT_TILES, CUT_ROWS, CUT_LOWER_ROWS, CUT_CODES };

#define CUT_LEAST_SIDE 16 /* of scaled images: below this, different scales give the same size */
#define CUT_PAIR_BITS 12  /* of a look-up that skips several codes at once */

typedef struct {
    int top, left, height, width; /* of the cut, in pixels of the image */
    int first_row, last_row, first_column, last_column; /* of MCUs */
    int way;                      /* CUT_TILES, … */
    int tiles_across;             /* CUT_TILES: intervals in a row of the cut */
    int row_tiles;                /* CUT_TILES: intervals in a row of the image */
    int64_t first_interval;       /* the first one kept */
    int64_t interval_count;       /* how many to keep; CUT_TILES: rows of them */
    size_t body;                  /* where the first kept interval begins */
    int64_t cost;                 /* time to cut and decode it, in 1/50 of decoding an MCU */
} jpeg_cut;

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
    int margin = (ratio > 1 ? divisor : 0) + (divisor > 1 ? divisor : 0);
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
    if (!jpeg_is_usual(header)) return 0;
    if (top < 0 || left < 0 || height < 1 || width < 1) return 0;
    if (height > header->height - top || width > header->width - left) return 0;
    if (divisor < 1 || divisor > 8) return 0;
    cut_side(top, top + height, header->height, header->mcu_height, header->most_down, divisor,
             &first_row, &last_row);
    cut_side(left, left + width, header->width, header->mcu_width, header->most_across, divisor,
             &first_column, &last_column);
    cut->tiles_across = cut->row_tiles = 0;
    cut->first_interval = cut->interval_count = 0;
    if (interval && interval < across && across % interval == 0) {
        int first_tile = first_column / interval, last_tile = last_column / interval;
        cut->way = CUT_TILES;
        cut->row_tiles = across / interval;
        cut->tiles_across = last_tile - first_tile + 1;
        first_column = first_tile * interval;
        last_column = (last_tile + 1) * interval - 1;
        cut->first_interval = (int64_t)first_row * cut->row_tiles + first_tile;
        cut->interval_count = last_row - first_row + 1;
        cut->cost = 50 * cut->interval_count * (last_column - first_column + 1);
    } else {
        int group = interval ? interval / cut_gcd(interval, across) : down;
        int first_of_group = first_row - first_row % group;
        int64_t rows = last_row - first_row + 1, columns = last_column - first_column + 1;
        int64_t decoded = (int64_t)(last_row - first_of_group + 1) * across;
        int64_t skipped = interval && interval < across
            ? rows * (columns + interval / 2) : (int64_t)(last_row + 1) * across;
        if (skipped > decoded) skipped = decoded;
        /* Measured: skipping codes takes 0.3 to 0.4 of the time of decoding them, copying and decoding
         * them 1.9 times as long, copying bits 0.06. */
        int64_t by_rows = 50 * decoded, by_codes = 20 * skipped + 95 * rows * columns;
        int64_t by_lower = interval ? INT64_MAX
            : (16 * (int64_t)first_row + 50 * rows + 3 * (int64_t)down) * across;
        cut->way = CUT_ROWS;
        cut->cost = by_rows;
        if (by_lower < cut->cost) {
            cut->way = CUT_LOWER_ROWS;
            cut->cost = by_lower;
        }
        if (by_codes < cut->cost) {
            cut->way = CUT_CODES;
            cut->cost = by_codes;
        }
        if (cut->way != CUT_CODES) {
            first_column = 0;
            last_column = across - 1;
        }
        if (cut->way == CUT_ROWS) {
            first_row = first_of_group;
            if (interval) {
                cut->first_interval = (int64_t)first_row * across / interval;
                cut->interval_count = (decoded + interval - 1) / interval;
            }
        }
    }
    cut->first_row = first_row;
    cut->last_row = last_row;
    cut->first_column = first_column;
    cut->last_column = last_column;
    cut->top = first_row * header->mcu_height;
    cut->left = first_column * header->mcu_width;
    cut->height = (last_row + 1) * header->mcu_height - cut->top;
    cut->width = (last_column + 1) * header->mcu_width - cut->left;
    if (cut->height > header->height - cut->top) cut->height = header->height - cut->top;
    if (cut->width > header->width - cut->left) cut->width = header->width - cut->left;
    int64_t kept = (int64_t)cut->height * cut->width;
    return kept <= (int64_t)header->height * header->width / 32 * 31;
}

/* The first marker in entropy-coded data from `at` on: where it begins, or `size`. */
static size_t cut_find_marker(const uint8_t *data, size_t size, size_t at) {
    while (at + 1 < size) {
        const uint8_t *found = (const uint8_t *)memchr(data + at, 0xFF, size - 1 - at);
        if (found == NULL) return size;
        at = (size_t)(found - data);
        uint8_t next = data[at + 1];
        if (next == 0) at += 2;         /* a stuffed byte */
        else if (next == 0xFF) at += 1; /* a fill byte */
        else return at;
    }
    return size;
}

/* The end of the interval that begins at `at`, whose number is given: where its marker begins, or
 * the end of the scan for the last one. 0 if another marker comes first.
 */
static size_t cut_interval_end(const uint8_t *data, size_t size, size_t at, int64_t number,
                               int is_last) {
    size_t end = cut_find_marker(data, size, at);
    if (is_last) return end;
    return end < size && data[end + 1] == (JPEG_RST0 | (number & 7)) ? end : 0;
}

/* Go through the intervals of a cut: write them renumbered to `out`, or only count if it is NULL.
 *
 * Returns how many bytes they take; 0 if the markers are not as they should be, or there is no room:
 * a mapped file may have changed after it was measured.
 */
static size_t cut_intervals(const uint8_t *data, size_t size, const jpeg_header *header,
                            const jpeg_cut *cut, uint8_t *out, size_t room) {
    int64_t interval = header->restart_interval;
    int64_t mcu_count = (int64_t)header->mcus_across * header->mcus_down;
    int64_t last = (mcu_count + interval - 1) / interval - 1, number = cut->first_interval;
    int run = cut->way == CUT_TILES ? cut->tiles_across : 1;
    size_t at = cut->body, total = 0, kept = 0;
    for (int64_t i = 0; i < cut->interval_count; i++) {
        for (int j = 0; j < run; j++, number++) {
            size_t end = cut_interval_end(data, size, at, number, number == last);
            if (!end || end - at + (kept ? 2 : 0) > room - total) return 0;
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
        for (int skipped = cut->row_tiles - cut->tiles_across; skipped > 0; skipped--, number++) {
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

/* Go through the header of a cut: write it to `out`, or only count if it is NULL. 0 if there is no
 * room.
 *
 * With `tables`, the cut has no intervals and the DC tables that have more codes.
 */
static size_t cut_head(const uint8_t *data, size_t size, const jpeg_header *header,
                       const jpeg_cut *cut, const scan_tables *tables, uint8_t *out, size_t room) {
    jpeg_segment segment;
    size_t at = 2, total = 2;
    if (out) memcpy(out, data, 2);
    while (at < header->scan && jpeg_read_segment(data, size, at, &segment)) {
        size_t length = segment.stop - segment.start;
        if (cut_keeps(segment.marker) && !(tables && segment.marker == JPEG_DRI)) {
            if (length + (tables ? SCAN_MAX_CODES : 0) > room - total) return 0;
            if (out && tables && segment.marker == JPEG_SOS)
                total = (size_t)(scan_put_codes(tables, out + total) - out);
            if (out) {
                memcpy(out + total, data + at, length);
                if (at == header->frame && length > 8) {
                    uint8_t *sides = out + total + 5;
                    sides[0] = (uint8_t)(cut->height >> 8);
                    sides[1] = (uint8_t)cut->height;
                    sides[2] = (uint8_t)(cut->width >> 8);
                    sides[3] = (uint8_t)cut->width;
                }
            }
            total += length;
        }
        if (segment.marker == JPEG_SOS) break;
        at = segment.stop;
    }
    return total;
}

/* ---- skipping codes -------------------------------------------------------------------------- */

/* For the next bits: how many of them are whole codes with their values, coefficients to skip << 5,
 * and whether they end the block << 15. 0: not even one code fits. */
typedef uint16_t cut_pairs[1 << CUT_PAIR_BITS];

static void cut_prepare_pairs(const huffman_decoder *decoder, uint16_t *pairs) {
    for (uint32_t i = 0; i < 1u << CUT_PAIR_BITS; i++) {
        uint32_t bits = i << (32 - CUT_PAIR_BITS);
        int used = 0, skipped = 0, is_end = 0;
        while (!is_end) {
            huffman_entry entry = decoder->fast[bits >> (32 - HUFFMAN_FAST_BITS)];
            int length = entry & 0xFF, count = entry >> 8;
            if (!entry || used + length > CUT_PAIR_BITS) break;
            is_end = count >= HUFFMAN_END_OF_BLOCK;
            if (!is_end && skipped + count >= JPEG_BLOCK * JPEG_BLOCK) break;
            if (!is_end) skipped += count;
            used += length;
            bits <<= length;
        }
        pairs[i] = (uint16_t)(is_end << 15 | skipped << 5 | used);
    }
}

/* Skip one block; its DC value is added to `dc`. Returns 0 if the block is damaged. */
static int cut_skip_block(bit_reader *from, const scan_tables *tables, const cut_pairs *all_pairs,
                          const jpeg_component *component, int *dc) {
    bit_reader reader = *from; /* in registers */
    const huffman_decoder *ac = &tables->ac[component->ac_table];
    const uint16_t *pairs = all_pairs[component->ac_table];
    huffman_entry entry = scan_next(&reader, &tables->dc[component->dc_table]);
    int length = entry & 0xFF, category = entry >> 8, at = 1;
    if (!entry) return 0;
    reader.bits <<= length;
    if (category) {
        int value = (int)(reader.bits >> (64 - category));
        *dc += value >> (category - 1) ? value : value - (1 << category) + 1;
        if (*dc > SCAN_MAX_DC || *dc < -SCAN_MAX_DC) return 0;
        reader.bits <<= category;
    }
    reader.count -= length + category;
    while (at < JPEG_BLOCK * JPEG_BLOCK) {
        if (reader.count < 32) scan_refill(&reader);
        int pair = pairs[reader.bits >> (64 - CUT_PAIR_BITS)], is_end = pair >> 15;
        int next = at + (pair >> 5 & 0x7F);
        if (pair && next + is_end <= JPEG_BLOCK * JPEG_BLOCK) {
            at = is_end ? JPEG_BLOCK * JPEG_BLOCK : next;
            length = pair & 31;
        } else {
            entry = scan_next(&reader, ac);
            if (!entry) return 0;
            at += entry >> 8;
            length = entry & 0xFF;
        }
        reader.bits <<= length;
        reader.count -= length;
    }
    *from = reader;
    return at == JPEG_BLOCK * JPEG_BLOCK || at >= HUFFMAN_END_OF_BLOCK;
}

/* Resume at an interval further below, found by its markers; 0 if one is not as it should be. A
 * reader never reads ahead past a marker. */
static int cut_seek(const uint8_t *data, size_t size, int64_t *number, int64_t wanted,
                    bit_reader *reader) {
    size_t at = (size_t)(reader->at - data);
    for (; *number < wanted; ++*number) {
        size_t end = cut_interval_end(data, size, at, *number, 0);
        if (!end) return 0;
        at = end + 2;
    }
    reader->at = data + at;
    reader->bits = 0;
    reader->count = reader->missing = 0;
    return 1;
}

/* Copy all bits up to the next marker, eight bytes at once where none is stuffed. */
static void cut_copy_bits(bit_reader *from, bit_writer *to) {
    bit_reader reader = *from; /* in registers */
    bit_writer writer = *to;
    for (int left = reader.count - reader.missing; left > 0;) {
        int count = left > 32 ? 32 : left;
        scan_put(&writer, reader.bits >> (64 - count), count);
        reader.bits <<= count;
        left -= count;
    }
    while (reader.at < reader.stop && !writer.is_full) {
        uint64_t word = reader.stop - reader.at < 8 ? UINT64_MAX : scan_load(reader.at);
        int room = writer.room;
        if (!scan_has_ff(word)) {
            uint64_t whole = room == 64 ? word
                : room ? writer.bits << room | word >> (64 - room) : writer.bits;
            scan_flush(&writer, whole, 8);
            writer.bits = word;
            reader.at += 8;
        } else if (*reader.at != 0xFF) {
            scan_put(&writer, *reader.at++, 8);
        } else if (reader.stop - reader.at > 1 && reader.at[1] == 0) {
            scan_put(&writer, 0xFF, 8);
            reader.at += 2;
        } else {
            break;
        }
    }
    *to = writer;
}

/* Copy the codes of the MCUs of a cut; 0 if they are damaged or do not fit. */
static int cut_codes(const uint8_t *data, size_t size, const jpeg_header *header,
                     const jpeg_cut *cut, scan_tables *tables, const cut_pairs *pairs,
                     bit_writer *writer) {
    int old_dc[JPEG_MAX_COMPONENTS] = {0}, new_dc[JPEG_MAX_COMPONENTS] = {0};
    int64_t interval = header->restart_interval, across = header->mcus_across, number = 0, mcu = 0;
    bit_reader reader = {data + header->scan, data + size, 0, 0, 0};
    int first_row = interval ? cut->first_row : 0;
    for (int row = first_row; row <= cut->last_row; row++) {
        int64_t first = row * across + cut->first_column;
        int64_t stop = row * across + (interval || row == cut->last_row
                                           ? cut->last_column + 1 : across);
        if (interval && first / interval > number) {
            if (!cut_seek(data, size, &number, first / interval, &reader)) return 0;
            mcu = number * interval;
            memset(old_dc, 0, sizeof(old_dc));
        }
        for (; mcu < stop; mcu++) {
            if (interval && mcu == (number + 1) * interval) {
                if (scan_read_marker(&reader) != (JPEG_RST0 | (number & 7))) return 0;
                number++;
                memset(old_dc, 0, sizeof(old_dc));
            }
            int is_kept = row >= cut->first_row && mcu >= first
                       && mcu <= first + cut->last_column - cut->first_column;
            for (int i = 0; i < header->component_count; i++) {
                const jpeg_component *component = &header->components[i];
                for (int block = component->across * component->down; block; block--)
                    if (is_kept ? !scan_copy_block(&reader, writer, tables, component,
                                                     &old_dc[i], &new_dc[i])
                                : !cut_skip_block(&reader, tables, pairs, component, &old_dc[i]))
                        return 0;
            }
            if (reader.count < reader.missing || writer->is_full) return 0;
            if (is_kept && cut->way == CUT_LOWER_ROWS) { /* other codes need no change */
                cut_copy_bits(&reader, writer);
                scan_end_interval(writer);
                return !writer->is_full;
            }
        }
    }
    scan_end_interval(writer);
    return !writer->is_full;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Plan a cut: the most bytes that it takes. 0 if the file cannot be cut, its markers are damaged, or
 * the cut would save next to nothing.
 *
 * `known` is the number of an interval that begins at `known_at`, to look for others from there.
 */
static size_t cut_measure(const uint8_t *data, size_t size, int top, int left, int height,
                          int width, int divisor, int64_t known, size_t known_at,
                          jpeg_header *header, jpeg_cut *cut) {
    size_t body_size = size - 2;
    if (!jpeg_read_header(data, size, header)) return 0;
    if (!cut_plan(header, top, left, height, width, divisor, cut)) return 0;
    cut->body = header->scan;
    if (cut->way >= CUT_LOWER_ROWS) return size + SCAN_MAX_CODES + 64;
    if (header->restart_interval) {
        int64_t number = 0;
        if (known > 0 && known <= cut->first_interval && known_at >= header->scan) {
            number = known;
            cut->body = known_at < size ? known_at : size;
        }
        for (; number < cut->first_interval; number++) {
            size_t end = cut_interval_end(data, size, cut->body, number, 0);
            if (!end) return 0;
            cut->body = end + 2;
        }
        body_size = cut_intervals(data, size, header, cut, NULL, SIZE_MAX);
        if (!body_size) return 0;
    } else {
        body_size = size - cut->body;
    }
    return cut_head(data, size, header, cut, NULL, NULL, SIZE_MAX) + body_size + 2;
}

/* Write what cut_measure has planned to `out`, which has `room` bytes: how many were written, 0 if
 * the file is damaged.
 */
static size_t cut_write(const uint8_t *data, size_t size, const jpeg_header *header,
                        const jpeg_cut *cut, uint8_t *out, size_t room) {
    size_t written;
    if (cut->way >= CUT_LOWER_ROWS) {
        scan_tables tables;
        cut_pairs pairs[HUFFMAN_TABLES];
        bit_writer writer;
        int added;
        if (!scan_prepare(data, header, &tables)) return 0;
        for (int id = 0; id < HUFFMAN_TABLES; id++)
            if (tables.uses_ac[id]) cut_prepare_pairs(&tables.ac[id], pairs[id]);
        do {
            bit_writer fresh = {out, out + room - 2, 0, 64, 0};
            size_t head_size = cut_head(data, size, header, cut, &tables, out, room - 2);
            writer = fresh;
            writer.at += head_size;
            if (!head_size || !cut_codes(data, size, header, cut, &tables, pairs, &writer)) return 0;
            added = scan_add_codes(&tables); /* a second time if codes are missing */
            if (added < 0) return 0;
        } while (added);
        written = (size_t)(writer.at - out);
    } else {
        size_t head_size = cut_head(data, size, header, cut, NULL, out, room - 2), body_size;
        if (!head_size) return 0;
        if (header->restart_interval) {
            body_size = cut_intervals(data, size, header, cut, out + head_size,
                                      room - 2 - head_size);
            if (!body_size) return 0;
        } else {
            body_size = size - cut->body;
            if (body_size > room - 2 - head_size) return 0;
            memcpy(out + head_size, data + cut->body, body_size);
        }
        written = head_size + body_size;
    }
    out[written] = 0xFF;
    out[written + 1] = JPEG_EOI;
    return written + 2;
}

#endif
