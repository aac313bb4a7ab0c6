/* Write a JPEG again with another restart interval, without decoding its coefficients.
 *
 * DC codes next to old and new markers are replaced. Segments keep their bytes, but for the interval
 * and for new codes of DC tables.
 */
#ifndef RECORDSMITH_TILING_H
#define RECORDSMITH_TILING_H

#include "jpeg_scan.h"

enum {
    TILING_DONE = 0,
    TILING_UNSUPPORTED = 1, /* another kind of JPEG, or an unusual one */
    TILING_DAMAGED = 2,
    TILING_TOO_LARGE = 3,   /* no room for the new file */
    TILING_NO_CODE = 4,     /* a DC table has no room for another code */
    TILING_LEFT_OVER = 5    /* after the last MCU, something else than the end mark */
};

enum { TILING_MAX_BLOCKS = 10, TILING_EXTRA = 2048 };

static void tiling_put_marker(bit_writer *writer, int marker) {
    if (writer->stop - writer->at < 2) {
        writer->is_full = 1;
        return;
    }
    *writer->at++ = 0xFF;
    *writer->at++ = (uint8_t)marker;
}

/* Copy the header with another interval, and with the DC tables that have more codes. */
static uint8_t *tiling_put_header(const uint8_t *data, const jpeg_header *header, int interval,
                                  const scan_tables *tables, uint8_t *out) {
    size_t scan_header = header->scan - (8 + 2 * (size_t)header->component_count), at = 2;
    jpeg_segment segment;
    int has_interval = 0;
    memcpy(out, data, scan_header);
    while (at < scan_header && jpeg_read_segment(data, header->scan, at, &segment)) {
        if (segment.marker == JPEG_DRI) {
            out[at + 4] = (uint8_t)(interval >> 8);
            out[at + 5] = (uint8_t)interval;
            has_interval = 1;
        }
        at = segment.stop;
    }
    out += scan_header;
    out = scan_put_codes(tables, out);
    if (!has_interval && interval) {
        out = scan_put_segment(out, JPEG_DRI, 4);
        *out++ = (uint8_t)(interval >> 8);
        *out++ = (uint8_t)interval;
    }
    memcpy(out, data + scan_header, header->scan - scan_header);
    return out + (header->scan - scan_header);
}

/* Copy the scan. `tables->lacking` shows afterwards whether codes are missing in the result. */
static int tiling_copy_scan(const jpeg_header *header, int interval, scan_tables *tables,
                            bit_reader *reader, bit_writer *writer) {
    int old_dc[JPEG_MAX_COMPONENTS] = {0}, new_dc[JPEG_MAX_COMPONENTS] = {0};
    int64_t mcu_count = (int64_t)header->mcus_down * header->mcus_across;
    int old_left = header->restart_interval, new_left = interval;
    int old_marker = 0, new_marker = 0;
    for (int64_t mcu = 0; mcu < mcu_count; mcu++) {
        if (header->restart_interval && old_left-- == 0) {
            if (scan_read_marker(reader) != JPEG_RST0 + old_marker) return TILING_DAMAGED;
            old_marker = (old_marker + 1) & 7;
            old_left = header->restart_interval - 1;
            memset(old_dc, 0, sizeof(old_dc));
        }
        if (interval && new_left-- == 0) {
            scan_end_interval(writer);
            tiling_put_marker(writer, JPEG_RST0 + new_marker);
            new_marker = (new_marker + 1) & 7;
            new_left = interval - 1;
            memset(new_dc, 0, sizeof(new_dc));
        }
        for (int i = 0; i < header->component_count; i++) {
            const jpeg_component *component = &header->components[i];
            for (int block = component->across * component->down; block; block--)
                if (!scan_copy_block(reader, writer, tables, component, &old_dc[i], &new_dc[i]))
                    return TILING_DAMAGED;
        }
        if (reader->count < reader->missing) return TILING_DAMAGED; /* the interval ends early */
        if (writer->is_full) return TILING_TOO_LARGE;
    }
    if (scan_read_marker(reader) != JPEG_EOI) return TILING_LEFT_OVER;
    scan_end_interval(writer);
    return TILING_DONE;
}

/* The most bytes that the new file may have. */
static size_t tiling_room(size_t size) { return 2 * size + TILING_EXTRA; }

/* Write a JPEG again with another interval in MCUs, or 0 for none, to `out` with `tiling_room`
 * bytes. What follows the image is copied. */
static int tiling_write(const uint8_t *data, size_t size, int interval, uint8_t *out,
                        size_t *out_size) {
    jpeg_header header;
    scan_tables tables;
    int blocks = 0, code, added = 1;
    if (!jpeg_read_header(data, size, &header)) return TILING_UNSUPPORTED;
    for (int i = 0; i < header.component_count; i++)
        blocks += header.components[i].across * header.components[i].down;
    if (blocks > TILING_MAX_BLOCKS) return TILING_UNSUPPORTED;
    if (!scan_prepare(data, &header, &tables)) return TILING_DAMAGED;
    while (added) { /* a second time if codes are missing */
        bit_reader reader = {data + header.scan, data + size, 0, 0, 0};
        bit_writer writer = {out, out + tiling_room(size), 0, 64, 0};
        writer.at = tiling_put_header(data, &header, interval, &tables, out);
        code = tiling_copy_scan(&header, interval, &tables, &reader, &writer);
        if (code != TILING_DONE) return code;
        added = scan_add_codes(&tables);
        if (added < 0) return TILING_NO_CODE;
        if (added) continue;
        size_t end = (size_t)(reader.at - data); /* after the marker */
        tiling_put_marker(&writer, JPEG_EOI);
        if ((size_t)(writer.stop - writer.at) < size - end) return TILING_TOO_LARGE;
        if (writer.is_full) return TILING_TOO_LARGE;
        memcpy(writer.at, data + end, size - end);
        *out_size = (size_t)(writer.at - out) + (size - end);
    }
    return TILING_DONE;
}

#endif
