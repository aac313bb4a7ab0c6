/* Huffman tables of a JPEG and the codes that they describe (ITU T.81, annexes C and F.2). */
#ifndef RECORDSMITH_JPEG_HUFFMAN_H
#define RECORDSMITH_JPEG_HUFFMAN_H

#include "jpeg_header.h"

enum {
    HUFFMAN_TABLES = 4,          /* of each class */
    HUFFMAN_DC = 0, HUFFMAN_AC = 1,
    HUFFMAN_LONGEST = 16,        /* bits of a code */
    HUFFMAN_FAST_BITS = 10,      /* codes up to this length are looked up */
    HUFFMAN_DC_CATEGORIES = 12,  /* 0 to 11, for 8-bit images */
    HUFFMAN_END_OF_BLOCK = 128   /* coefficients to skip: more than a block has */
};

/* A copy, as a mapped file may change after it was checked. */
typedef struct {
    int is_defined;
    uint8_t counts[HUFFMAN_LONGEST]; /* of codes with 1 to 16 bits */
    uint8_t symbols[256];            /* in the order of their codes */
} huffman_spec;

typedef struct { huffman_spec tables[2][HUFFMAN_TABLES]; } huffman_specs;

/* What follows a code. DC: bits of the code, category << 8. AC: bits of the code and of the value
 * after it, coefficients to skip << 8. 0: no valid code. */
typedef uint16_t huffman_entry;

typedef struct {
    huffman_entry fast[1 << HUFFMAN_FAST_BITS];
    uint32_t limits[HUFFMAN_LONGEST + 1]; /* the first 16 bits that are beyond codes of a length */
    int offsets[HUFFMAN_LONGEST + 1];     /* a code of this length + offset = place of its symbol */
    uint8_t symbols[256];
    int class_;
} huffman_decoder;

/* Find the tables in all DHT segments before the scan; 0 if one is malformed. */
static int huffman_read_specs(const uint8_t *data, const jpeg_header *header, huffman_specs *specs) {
    jpeg_segment segment;
    size_t at = 2;
    memset(specs, 0, sizeof(*specs));
    while (at < header->scan && jpeg_read_segment(data, header->scan, at, &segment)) {
        const uint8_t *here = data + at + 4, *stop = data + segment.stop;
        at = segment.stop;
        if (segment.marker != JPEG_DHT) continue;
        while (here < stop) {
            int class_ = here[0] >> 4, id = here[0] & 15, count = 0;
            if (stop - here < 17 || class_ > 1 || id >= HUFFMAN_TABLES) return 0;
            huffman_spec *spec = &specs->tables[class_][id];
            memcpy(spec->counts, here + 1, HUFFMAN_LONGEST);
            for (int i = 0; i < HUFFMAN_LONGEST; i++) count += spec->counts[i];
            if (count > 256 || stop - here < 17 + count) return 0;
            memcpy(spec->symbols, here + 17, (size_t)count);
            spec->is_defined = 1;
            here += 17 + count;
        }
    }
    return 1;
}

static inline huffman_entry huffman_entry_of(int class_, int symbol, int code_bits) {
    int run = symbol >> 4, value_bits = symbol & 15;
    if (class_ == HUFFMAN_DC)
        return (huffman_entry)(symbol < HUFFMAN_DC_CATEGORIES ? symbol << 8 | code_bits : 0);
    if (symbol == 0) return (huffman_entry)(HUFFMAN_END_OF_BLOCK << 8 | code_bits);
    if (value_bits == 0 && run != 15) return 0;
    return (huffman_entry)((run + 1) << 8 | (code_bits + value_bits));
}

/* Prepare to decode; 0 if the table is missing or its codes do not fit (the code of ones only is
 * reserved). */
static int huffman_prepare(const huffman_spec *spec, int class_, huffman_decoder *decoder) {
    uint32_t code = 0;
    int place = 0;
    if (!spec->is_defined) return 0;
    memset(decoder->fast, 0, sizeof(decoder->fast));
    memcpy(decoder->symbols, spec->symbols, sizeof(decoder->symbols));
    decoder->class_ = class_;
    for (int bits = 1; bits <= HUFFMAN_LONGEST; bits++, code <<= 1) {
        int count = spec->counts[bits - 1];
        if (count && code + (uint32_t)count >= (uint32_t)1 << bits) return 0;
        decoder->offsets[bits] = place - (int)code;
        for (int i = 0; i < count; i++, code++, place++) {
            if (bits > HUFFMAN_FAST_BITS) continue;
            huffman_entry entry = huffman_entry_of(class_, spec->symbols[place], bits);
            int first = (int)code << (HUFFMAN_FAST_BITS - bits);
            for (int j = 0; j < 1 << (HUFFMAN_FAST_BITS - bits); j++)
                decoder->fast[first + j] = entry;
        }
        decoder->limits[bits] = code << (HUFFMAN_LONGEST - bits);
    }
    return 1;
}

/* The entry of the code at the start of 16 bits that `fast` does not know. */
static huffman_entry huffman_find_long(const huffman_decoder *decoder, uint32_t bits16) {
    if (bits16 < decoder->limits[HUFFMAN_FAST_BITS]) return 0; /* a short code, not valid */
    for (int bits = HUFFMAN_FAST_BITS + 1; bits <= HUFFMAN_LONGEST; bits++)
        if (bits16 < decoder->limits[bits]) {
            int code = (int)(bits16 >> (HUFFMAN_LONGEST - bits));
            return huffman_entry_of(decoder->class_, decoder->symbols[code + decoder->offsets[bits]],
                                    bits);
        }
    return 0;
}

/* The codes of DC categories, in a table that may have more of them than the file. */
typedef struct {
    uint8_t counts[HUFFMAN_LONGEST], symbols[256];
    int symbol_count;
    uint32_t next;   /* the code after the last one, which has `longest` bits */
    int longest;     /* 0 for a table without codes */
    uint16_t codes[HUFFMAN_DC_CATEGORIES];
    uint8_t lengths[HUFFMAN_DC_CATEGORIES]; /* 0: the category has no code */
} huffman_dc_table;

static void huffman_copy_dc(const huffman_spec *spec, huffman_dc_table *table) {
    uint32_t code = 0;
    memset(table, 0, sizeof(*table));
    memcpy(table->counts, spec->counts, HUFFMAN_LONGEST);
    for (int bits = 1; bits <= HUFFMAN_LONGEST; bits++, code <<= 1)
        for (int i = 0; i < spec->counts[bits - 1]; i++, code++) {
            int symbol = table->symbols[table->symbol_count] = spec->symbols[table->symbol_count];
            table->symbol_count++;
            table->longest = bits;
            table->next = code + 1;
            if (symbol >= HUFFMAN_DC_CATEGORIES || table->lengths[symbol]) continue;
            table->codes[symbol] = (uint16_t)code;
            table->lengths[symbol] = (uint8_t)bits;
        }
}

/* Add a code for one more category behind all others, which keep theirs; 0 if there is no room. */
static int huffman_add_category(huffman_dc_table *table, int category) {
    int bits = table->longest ? table->longest : 1;
    uint32_t code = table->next;
    for (; code + 1 >= (uint32_t)1 << bits; code <<= 1) bits++;
    if (bits > HUFFMAN_LONGEST || table->symbol_count == 256) return 0;
    table->counts[bits - 1]++;
    table->symbols[table->symbol_count++] = (uint8_t)category;
    table->codes[category] = (uint16_t)code;
    table->lengths[category] = (uint8_t)bits;
    table->longest = bits;
    table->next = code + 1;
    return 1;
}

#endif
