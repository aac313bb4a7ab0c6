/* Read and write the Huffman codes of a scan, block by block, without decoding coefficients.
 *
 * Codes are copied as they are. Only a DC code holds a difference to the block before, which is 0 at
 * the start and after a marker: it is replaced where another block comes before. If a DC table has no
 * code for a difference, the table gets longer codes, in a DHT segment before the scan; its other
 * codes stay.
 */
#ifndef RECORDSMITH_JPEG_SCAN_H
#define RECORDSMITH_JPEG_SCAN_H

#include "jpeg_huffman.h"

enum {
    SCAN_MAX_DC = 32767,
    SCAN_MAX_CODES = HUFFMAN_TABLES * (4 + 1 + HUFFMAN_LONGEST + 256) /* bytes, of scan_put_codes */
};

/* ---- bits of the scan ------------------------------------------------------------------------ */

typedef struct {
    const uint8_t *at, *stop; /* the bytes that are left */
    uint64_t bits;            /* the next bits, from the highest one on */
    int count;                /* how many of them are valid */
    int missing;              /* how many of the last ones stand for bytes after a marker */
} bit_reader;

typedef struct {
    uint8_t *at, *stop;
    uint64_t bits; /* the last bits, to the lowest one */
    int room;      /* how many bits are free */
    int is_full;
} bit_writer;

static inline int scan_has_ff(uint64_t word) {
    return ((~word - 0x0101010101010101u) & word & 0x8080808080808080u) != 0;
}

static inline uint64_t scan_load(const uint8_t *at) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) word = word << 8 | at[i];
    return word;
}

static inline void scan_store(uint8_t *at, uint64_t word) {
    for (int i = 7; i >= 0; i--, word >>= 8) at[i] = (uint8_t)word;
}

/* At least 56 bits, or zeros where a marker or the end of the file is reached. */
static inline void scan_refill(bit_reader *reader) {
    if (reader->stop - reader->at >= 8) {
        uint64_t word = scan_load(reader->at);
        if (!scan_has_ff(word)) {
            int bytes = (63 - reader->count) >> 3;
            reader->bits |= word >> reader->count;
            reader->at += bytes;
            reader->count += 8 * bytes;
            return;
        }
    }
    while (reader->count <= 56) {
        uint64_t byte = 0;
        if (reader->at < reader->stop && reader->at[0] != 0xFF) {
            byte = *reader->at++;
        } else if (reader->stop - reader->at >= 2 && reader->at[1] == 0) {
            byte = 0xFF;
            reader->at += 2;
        } else {
            reader->missing += 8;
        }
        reader->bits |= byte << (56 - reader->count);
        reader->count += 8;
    }
}

static inline void scan_put_byte(bit_writer *writer, uint8_t byte) {
    *writer->at++ = byte;
    if (byte == 0xFF) *writer->at++ = 0;
}

/* Write the highest bytes of a word. */
static inline void scan_flush(bit_writer *writer, uint64_t word, int bytes) {
    if (writer->stop - writer->at < 16) {
        writer->is_full = 1;
    } else if (bytes == 8 && !scan_has_ff(word)) {
        scan_store(writer->at, word);
        writer->at += 8;
    } else {
        for (int i = 0; i < bytes; i++, word <<= 8) scan_put_byte(writer, (uint8_t)(word >> 56));
    }
}

/* Append the lowest `count` bits of `value`; the others are 0, and 0 < count <= 32. */
static inline void scan_put(bit_writer *writer, uint64_t value, int count) {
    writer->room -= count;
    if (writer->room >= 0) {
        writer->bits = writer->bits << count | value;
    } else {
        int rest = -writer->room;
        scan_flush(writer, writer->bits << (count - rest) | value >> rest, 8);
        writer->bits = value;
        writer->room += 64;
    }
}

/* Fill the last byte with ones, and write all that is left. */
static void scan_end_interval(bit_writer *writer) {
    int fill = writer->room & 7, count;
    if (fill) scan_put(writer, ((uint64_t)1 << fill) - 1, fill);
    count = 64 - writer->room;
    if (count) scan_flush(writer, writer->bits << writer->room, count / 8);
    writer->bits = 0;
    writer->room = 64;
}

/* The marker after an interval, or 0 if the interval has too few or too many bits. */
static int scan_read_marker(bit_reader *reader) {
    int left = reader->count - reader->missing;
    if (left < 0 || left > 7 || reader->at == reader->stop || *reader->at != 0xFF) return 0;
    while (reader->at < reader->stop && *reader->at == 0xFF) reader->at++; /* also fill bytes */
    if (reader->at == reader->stop) return 0;
    reader->bits = 0;
    reader->count = reader->missing = 0;
    return *reader->at++; /* 0 is the second byte of a stuffed one */
}

/* ---- blocks ---------------------------------------------------------------------------------- */

typedef struct {
    huffman_decoder dc[HUFFMAN_TABLES], ac[HUFFMAN_TABLES]; /* those that the scan uses */
    huffman_dc_table new_dc[HUFFMAN_TABLES];
    uint16_t lacking[HUFFMAN_TABLES]; /* a bit for each category that needs a code */
    int uses_dc[HUFFMAN_TABLES], uses_ac[HUFFMAN_TABLES];
    int extended[HUFFMAN_TABLES]; /* whether new_dc has more codes than dc */
} scan_tables;

static inline int scan_category(int value) {
    int bits = 0;
    for (unsigned left = (unsigned)(value < 0 ? -value : value); left; left >>= 1) bits++;
    return bits;
}

static int scan_put_difference(bit_writer *writer, int difference, const huffman_dc_table *table,
                                 uint16_t *lacking) {
    int category = scan_category(difference);
    if (category >= HUFFMAN_DC_CATEGORIES) return 0;
    if (!table->lengths[category]) {
        *lacking |= (uint16_t)(1 << category);
        return 1;
    }
    int value = difference < 0 ? difference + (1 << category) - 1 : difference;
    scan_put(writer, (uint64_t)table->codes[category] << category | (uint64_t)value,
               table->lengths[category] + category);
    return 1;
}

static inline huffman_entry scan_next(bit_reader *reader, const huffman_decoder *decoder) {
    huffman_entry entry;
    if (reader->count < 32) scan_refill(reader);
    entry = decoder->fast[reader->bits >> (64 - HUFFMAN_FAST_BITS)];
    return entry ? entry : huffman_find_long(decoder, (uint32_t)(reader->bits >> 48));
}

/* Copy one block.
 *
 * The DC values of the blocks before, as the old and the new file predict them, become those of
 * this block. Returns 0 if the block is damaged.
 */
static int scan_copy_block(bit_reader *from, bit_writer *to, scan_tables *tables,
                             const jpeg_component *component, int *old_dc, int *new_dc) {
    bit_reader reader = *from; /* in registers */
    bit_writer writer = *to;
    const huffman_decoder *ac = &tables->ac[component->ac_table];
    huffman_entry entry = scan_next(&reader, &tables->dc[component->dc_table]);
    int length = entry & 0xFF, category = entry >> 8, dc = *old_dc, at = 1;
    if (!entry) return 0;
    int whole = length + category;
    uint64_t bits = reader.bits >> (64 - whole);
    if (category) {
        int value = (int)(bits & (((uint64_t)1 << category) - 1));
        dc += value >> (category - 1) ? value : value - (1 << category) + 1;
    }
    reader.bits <<= whole;
    reader.count -= whole;
    if (dc > SCAN_MAX_DC || dc < -SCAN_MAX_DC) return 0;
    if (*old_dc == *new_dc)
        scan_put(&writer, bits, whole);
    else if (!scan_put_difference(&writer, dc - *new_dc, &tables->new_dc[component->dc_table],
                                    &tables->lacking[component->dc_table]))
        return 0;
    *old_dc = *new_dc = dc;
    while (at < JPEG_BLOCK * JPEG_BLOCK) {
        entry = scan_next(&reader, ac);
        if (!entry) return 0;
        length = entry & 0xFF;
        scan_put(&writer, reader.bits >> (64 - length), length);
        reader.bits <<= length;
        reader.count -= length;
        at += entry >> 8;
    }
    *from = reader;
    *to = writer;
    return at == JPEG_BLOCK * JPEG_BLOCK || at >= HUFFMAN_END_OF_BLOCK;
}

/* ---- tables of the file ----------------------------------------------------------------------- */

static int scan_prepare(const uint8_t *data, const jpeg_header *header, scan_tables *tables) {
    huffman_specs specs;
    memset(tables->lacking, 0, sizeof(tables->lacking));
    memset(tables->uses_dc, 0, sizeof(tables->uses_dc));
    memset(tables->uses_ac, 0, sizeof(tables->uses_ac));
    memset(tables->extended, 0, sizeof(tables->extended));
    if (!huffman_read_specs(data, header, &specs)) return 0;
    for (int i = 0; i < header->component_count; i++) {
        int dc = header->components[i].dc_table, ac = header->components[i].ac_table;
        const huffman_spec *dc_spec = &specs.tables[HUFFMAN_DC][dc];
        const huffman_spec *ac_spec = &specs.tables[HUFFMAN_AC][ac];
        if (!tables->uses_dc[dc]) {
            if (!huffman_prepare(dc_spec, HUFFMAN_DC, &tables->dc[dc])) return 0;
            huffman_copy_dc(dc_spec, &tables->new_dc[dc]);
        }
        if (!tables->uses_ac[ac] && !huffman_prepare(ac_spec, HUFFMAN_AC, &tables->ac[ac]))
            return 0;
        tables->uses_dc[dc] = tables->uses_ac[ac] = 1;
    }
    return 1;
}

static uint8_t *scan_put_segment(uint8_t *out, int marker, size_t length) {
    out[0] = 0xFF;
    out[1] = (uint8_t)marker;
    out[2] = (uint8_t)(length >> 8);
    out[3] = (uint8_t)length;
    return out + 4;
}

/* Write the DC tables that have more codes than in the file. */
static uint8_t *scan_put_codes(const scan_tables *tables, uint8_t *out) {
    for (int id = 0; id < HUFFMAN_TABLES; id++) {
        const huffman_dc_table *table = &tables->new_dc[id];
        if (!tables->extended[id]) continue;
        out = scan_put_segment(out, JPEG_DHT, 19 + (size_t)table->symbol_count);
        *out++ = (uint8_t)id;
        memcpy(out, table->counts, HUFFMAN_LONGEST);
        memcpy(out + HUFFMAN_LONGEST, table->symbols, (size_t)table->symbol_count);
        out += HUFFMAN_LONGEST + table->symbol_count;
    }
    return out;
}

/* Add the codes that `lacking` names: how many tables have more codes now, -1 if there is no room. */
static int scan_add_codes(scan_tables *tables) {
    int count = 0;
    for (int id = 0; id < HUFFMAN_TABLES; id++) {
        if (!tables->lacking[id]) continue;
        for (int category = 0; category < HUFFMAN_DC_CATEGORIES; category++)
            if (tables->lacking[id] >> category & 1
                && !huffman_add_category(&tables->new_dc[id], category))
                return -1;
        tables->lacking[id] = 0;
        tables->extended[id] = 1;
        count++;
    }
    return count;
}

#endif
