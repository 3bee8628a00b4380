/* The members of a tar file and the samples that they are, found by reading headers alone.
 *
 * A scan goes from header to header of a file of which a part is in memory, and says what else it
 * needs.  Samples that are like most - an image or array, and a class in a `.cls` file - are put into
 * tables here.  Of all others the parts are kept, and Python finds out what they are.
 */
#ifndef RECORDIO_TAR_MEMBERS_H
#define RECORDIO_TAR_MEMBERS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TAR_BLOCK 512
/* Most bytes of headers that describe one member: long names, and those of pax. */
#define TAR_MOST_EXTENDED  (1 << 22)
#define TAR_LONGEST_NAME   4096
#define TAR_LONGEST_ENDING 255
/* Parts of a sample of the usual kind, and parts from which on only contents and labels are kept. */
#define TAR_FEW_PARTS  16
#define TAR_MOST_PARTS 1000
#define TAR_MOST_KINDS 1000
/* Bytes of a text that holds one class. */
#define TAR_SHORT_LABEL 32
/* Headers that are compared with an index, besides those where something lies between two files. */
#define TAR_COMPARED 16

enum { TAR_END = 0, TAR_MORE = 1, TAR_DAMAGED = 2, TAR_NO_MEMORY = -1 };
enum { TAR_OTHER = 0, TAR_CONTENT = 1, TAR_CLASS = 2, TAR_FIELDS = 3, TAR_OTHER_CLASS = 4 };

/* A table that grows; `size` and `capacity` are bytes. */
typedef struct tar_table {
    uint8_t* data;
    size_t size, capacity;
} tar_table;

/* A file of a sample.  The ending begins at `ending` of the texts, in lower case. */
typedef struct tar_part {
    int64_t offset, size, ending, ending_size;
    int32_t kind, is_sparse;
} tar_part;

/* A sample that Python looks at: its number, its parts, and its key in the texts. */
typedef struct tar_hard {
    int64_t row, first_part, parts, key, key_size;
} tar_hard;

/* How often something was passed over that ends so. */
typedef struct tar_tally {
    int64_t count;
    int32_t size;
    uint8_t ending[TAR_LONGEST_ENDING + 1];
} tar_tally;

typedef struct tar_scan {
    int64_t size, position;       /* of the file, and of the next header */
    int64_t want_begin, want_end; /* what is needed to go on */
    int64_t most_content;
    const char* reason;
    const uint64_t* contents;     /* endings of contents, as words */
    int contents_count, last_dot; /* and where a name is split */
    /* what headers before a member say of it */
    uint8_t name[TAR_LONGEST_NAME + 1], global_name[TAR_LONGEST_NAME + 1];
    int64_t name_size, global_name_size, member_size, extended; /* sizes are -1 if not given */
    int is_sparse;
    /* the sample that is being read */
    int64_t key, key_size, first_part, count, label;
    int has_label, reads_labels;
    /* what was found */
    tar_table offsets, sizes, labels, names, name_starts, parts, texts, hard, tallies, odd;
    int64_t rows, without_ending, no_files, other_kinds;
} tar_scan;

static inline void* tar_add(tar_table* table, size_t size) {
    if (table->capacity - table->size < size) {
        size_t capacity = table->capacity * 2 + size + 256;
        uint8_t* data = (uint8_t*)realloc(table->data, capacity);
        if (!data) return NULL;
        table->data = data, table->capacity = capacity;
    }
    table->size += size;
    return table->data + table->size - size;
}

static inline int tar_add_number(tar_table* table, int64_t number) {
    void* at = tar_add(table, sizeof number);
    if (at) memcpy(at, &number, sizeof number);
    return at != NULL;
}

/* -- headers ------------------------------------------------------------------------------------ */

static inline int tar_is_zero(const uint8_t* block) {
    uint64_t any = 0, word;
    for (int i = 0; i < TAR_BLOCK; i += 8) {
        memcpy(&word, block + i, 8);
        any |= word;
    }
    return !any;
}

static inline size_t tar_text_size(const uint8_t* text, size_t most) {
    const uint8_t* end = (const uint8_t*)memchr(text, 0, most);
    return end ? (size_t)(end - text) : most;
}

static inline int tar_is_space(uint8_t byte) {
    return byte == ' ' || (byte >= 9 && byte <= 13);
}

/* A number of a header: octal, or in base 256; -1 if it is none, or negative, or too large. */
static inline int64_t tar_number(const uint8_t* field, size_t size) {
    uint64_t number = 0;
    size_t i = 0;
    if (field[0] == 0x80) {
        for (i = 1; i < size; i++) {
            if (number >> 54) return -1;
            number = number << 8 | field[i];
        }
        return (int64_t)number;
    }
    size = tar_text_size(field, size);
    while (i < size && tar_is_space(field[i]))
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        number = number << 3 | (field[i] - '0');
    for (; i < size && tar_is_space(field[i]); i++) {
    }
    return i == size ? (int64_t)number : -1;
}

/* Whether the sum of a header is right; some old programs added signed bytes. */
static inline int tar_sum_is_right(const uint8_t* header) {
    int64_t stated = tar_number(header + 148, 8);
    uint32_t sum = 0, inside = 0;
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += header[i];
    for (int i = 148; i < 156; i++)
        inside += header[i];
    if ((int64_t)sum - inside + 8 * ' ' == stated) return 1;
    int64_t signed_sum = 8 * ' ';
    for (int i = 0; i < TAR_BLOCK; i++) {
        if (i < 148 || i >= 156) signed_sum += (int8_t)header[i];
    }
    return signed_sum == stated;
}

static inline int64_t tar_padded(int64_t size) {
    return (size + TAR_BLOCK - 1) & -(int64_t)TAR_BLOCK;
}

/* Whether a part of a path is hidden, or made by a system; see `recordio.containers.names`. */
static inline int tar_is_system_part(const uint8_t* part, size_t size) {
    static const char* const names[] = {"#recycle",   "$recycle.bin", "@eadir",
                                        "@recycle",   "__macosx",     "desktop.ini",
                                        "lost+found", "thumbs.db",    "system volume information"};
    if (part[0] == '.') return size > 2 || (size == 2 && part[1] != '.');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t j = 0;
        if (strlen(names[i]) != size) continue;
        while (j < size &&
               (part[j] >= 'A' && part[j] <= 'Z' ? part[j] + 32 : part[j]) == (uint8_t)names[i][j])
            j++;
        if (j == size) return 1;
    }
    return 0;
}

static inline int tar_is_system(const uint8_t* name, size_t size) {
    for (size_t i = 0, begin = 0; i <= size; i++) {
        if (i < size && name[i] != '/') continue;
        if (i > begin && tar_is_system_part(name + begin, i - begin)) return 1;
        begin = i + 1;
    }
    return 0;
}

/* Where the stem of a name begins, behind "./", and the first or the last dot of its last component; 0
 * if the name is that of no sample. */
static inline int tar_split(const uint8_t* name, size_t size, int last_dot, size_t* begin, size_t* dot) {
    *begin = size >= 2 && name[0] == '.' && name[1] == '/' ? 2 : 0;
    size_t last = size;
    while (last > *begin && name[last - 1] != '/')
        last--;
    const uint8_t* first_dot = (const uint8_t*)memchr(name + last, '.', size - last);
    if (!first_dot || tar_is_system(name, size)) return 0;
    *dot = (size_t)(first_dot - name);
    for (size_t i = *dot; last_dot && i + 1 < size; i++) {
        if (name[i] == '.') *dot = i;
    }
    return *dot > last && *dot + 1 < size;
}

/* -- headers before a member -------------------------------------------------------------------- */

static inline int tar_fail(tar_scan* scan, const char* reason) {
    scan->reason = reason;
    return TAR_DAMAGED;
}

/* Keep a name.  In a pax header it may have zero bytes, and tarfile keeps them, too. */
static inline int tar_take_name(const uint8_t* text, size_t size, uint8_t* name, int64_t* name_size) {
    if (size > TAR_LONGEST_NAME) return 0;
    memcpy(name, text, size);
    *name_size = (int64_t)size;
    return 1;
}

static inline int tar_is_key(const uint8_t* text, size_t size, const char* key) {
    return size == strlen(key) && !memcmp(text, key, size);
}

/* Read the records of a pax header, "LENGTH KEY=VALUE\n"; the outermost one that says something
 * counts, as for tarfile. */
static inline int tar_read_pax(tar_scan* scan, const uint8_t* text, size_t size, int is_global) {
    static const char* damaged = "a pax header is damaged";
    static const char* too_long = "the name of a file is too long";
    int has_name = scan->name_size >= 0, has_size = scan->member_size >= 0;
    size_t at = 0;
    while (at < size && text[at]) {
        size_t length = 0, i = at;
        for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) {
            length = length * 10 + (size_t)(text[i] - '0');
            if (length > size) return tar_fail(scan, damaged);
        }
        if (i == at || i == size || text[i] != ' ' || length > size - at || length < i - at + 3 ||
            text[at + length - 1] != '\n')
            return tar_fail(scan, damaged);
        const uint8_t *key = text + i + 1, *end = text + at + length - 1;
        const uint8_t* value = (const uint8_t*)memchr(key, '=', (size_t)(end - key));
        if (!value) return tar_fail(scan, damaged);
        size_t key_size = (size_t)(value - key), value_size = (size_t)(end - ++value);
        int is_path = tar_is_key(key, key_size, "path");
        if (is_path && is_global) {
            if (!tar_take_name(value, value_size, scan->global_name, &scan->global_name_size))
                return tar_fail(scan, too_long);
        } else if ((is_path || tar_is_key(key, key_size, "GNU.sparse.name")) && !has_name) {
            if (!tar_take_name(value, value_size, scan->name, &scan->name_size))
                return tar_fail(scan, too_long);
        }
        if (tar_is_key(key, key_size, "size")) {
            if (is_global) return tar_fail(scan, "a pax header gives one size for all files");
            uint64_t number = 0;
            if (!value_size || value_size > 18) return tar_fail(scan, damaged);
            for (size_t k = 0; k < value_size; k++) {
                if (value[k] < '0' || value[k] > '9') return tar_fail(scan, damaged);
                number = number * 10 + (uint64_t)(value[k] - '0');
            }
            if (!has_size) scan->member_size = (int64_t)number;
        }
        if (key_size >= 11 && !memcmp(key, "GNU.sparse.", 11)) scan->is_sparse = 1;
        at += length;
    }
    return TAR_END;
}

static inline void tar_forget(tar_scan* scan) {
    scan->name_size = scan->member_size = -1;
    scan->extended = scan->is_sparse = 0;
}

/* -- samples ------------------------------------------------------------------------------------ */

static inline int tar_tally_one(tar_scan* scan, const uint8_t* ending, size_t size) {
    tar_tally* tally = (tar_tally*)scan->tallies.data;
    size_t count = scan->tallies.size / sizeof *tally;
    for (size_t i = 0; i < count; i++) {
        if (tally[i].size == (int32_t)size && !memcmp(tally[i].ending, ending, size)) {
            tally[i].count++;
            return 1;
        }
    }
    if (count >= TAR_MOST_KINDS) {
        scan->other_kinds++;
        return 1;
    }
    tally = (tar_tally*)tar_add(&scan->tallies, sizeof *tally);
    if (!tally) return 0;
    tally->count = 1, tally->size = (int32_t)size;
    memcpy(tally->ending, ending, size);
    return 1;
}

/* What a file is by its ending, which is in lower case. */
static inline int tar_kind(const tar_scan* scan, const uint8_t* ending, size_t size) {
    if (size == 3 && !memcmp(ending, "cls", 3)) return TAR_CLASS;
    if (size == 4 && !memcmp(ending, "json", 4)) return TAR_FIELDS;
    size_t last = size;
    while (last && ending[last - 1] != '.')
        last--;
    if (size - last > 8) return TAR_OTHER;
    if (size - last == 3 && !memcmp(ending + last, "cls", 3)) return TAR_OTHER_CLASS;
    uint64_t word = 0;
    memcpy(&word, ending + last, size - last);
    for (int i = 0; i < scan->contents_count; i++) {
        if (scan->contents[i] == word) return TAR_CONTENT;
    }
    return TAR_OTHER;
}

/* Whether a list can hold a name as it is; see `recordio.lists.safe_name`. */
static inline int tar_is_plain(const uint8_t* name, size_t size) {
    if (!size || size > TAR_LONGEST_NAME - TAR_LONGEST_ENDING - 1 || name[0] == ' ') return 0;
    size_t begin = 0;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && (name[i] < ' ' || name[i] >= 0x7f)) return 0;
        if (i < size && name[i] != '/') continue;
        size_t length = i - begin;
        if (!length || (length <= 2 && name[begin] == '.' && name[i - 1] == '.')) return 0;
        begin = i + 1;
    }
    return 1;
}

/* Read one whole number of few digits, with white space round it. */
static inline int tar_read_label(const uint8_t* text, size_t size, int64_t* label) {
    size_t i = 0, digits = 0;
    int negative = 0;
    int64_t number = 0;
    while (i < size && tar_is_space(text[i]))
        i++;
    if (i < size && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
    for (; i < size && text[i] >= '0' && text[i] <= '9' && digits < 8; i++, digits++)
        number = number * 10 + (text[i] - '0');
    while (i < size && tar_is_space(text[i]))
        i++;
    *label = negative ? -number : number;
    return i == size && digits && digits < 8;
}

/* The content of a sample that is like most; NULL if Python has to look at it. */
static inline tar_part* tar_content(tar_scan* scan, tar_part* parts) {
    const uint8_t* texts = scan->texts.data;
    tar_part* content = NULL; /* the first one with a single ending, or else the first */
    int has_plain = 0;
    if (scan->count > TAR_FEW_PARTS || !scan->has_label) return NULL;
    for (int64_t i = 0; i < scan->count; i++) {
        const tar_part* one = parts + i;
        for (int64_t j = 0; j < i; j++) {
            if (parts[j].ending_size == one->ending_size &&
                !memcmp(texts + parts[j].ending, texts + one->ending, (size_t)one->ending_size))
                return NULL;
        }
        for (int64_t j = 0; j < one->ending_size; j++) {
            uint8_t byte = texts[one->ending + j];
            if (byte <= ' ' || byte >= 0x7f) return NULL;
        }
        if (one->kind == TAR_OTHER_CLASS) return NULL;
        if (one->kind != TAR_CONTENT) continue;
        int is_plain = !memchr(texts + one->ending, '.', (size_t)one->ending_size);
        if (!content || (is_plain && !has_plain)) content = parts + i;
        has_plain |= is_plain;
    }
    if (!content || content->is_sparse || content->size > scan->most_content) return NULL;
    return tar_is_plain(texts + scan->key, (size_t)scan->key_size) ? content : NULL;
}

/* Say where a name begins, or behind all of them where the last one ends. */
static inline int tar_end_names(tar_scan* scan) {
    return tar_add_number(&scan->name_starts, (int64_t)scan->names.size);
}

/* End the sample that is being read, and put it into the tables. */
static inline int tar_close(tar_scan* scan) {
    if (!scan->count) return 1;
    tar_part* parts = (tar_part*)scan->parts.data + scan->first_part;
    tar_part* content = tar_content(scan, parts);
    float label = content ? (float)scan->label : 0;
    float* labels = (float*)tar_add(&scan->labels, sizeof *labels);
    if (!labels) return 0;
    memcpy(labels, &label, sizeof label);
    if (!tar_end_names(scan) || !tar_add_number(&scan->offsets, content ? content->offset : parts->offset) ||
        !tar_add_number(&scan->sizes, content ? content->size : -1))
        return 0;
    if (content) {
        size_t key_size = (size_t)scan->key_size, ending_size = (size_t)content->ending_size;
        uint8_t* name = (uint8_t*)tar_add(&scan->names, key_size + 1 + ending_size);
        if (!name) return 0;
        memcpy(name, scan->texts.data + scan->key, key_size);
        name[key_size] = '.';
        memcpy(name + key_size + 1, scan->texts.data + content->ending, ending_size);
        for (int64_t i = 0; i < scan->count; i++) {
            if (parts + i == content || parts[i].kind == TAR_CLASS) continue;
            if (!tar_tally_one(scan, scan->texts.data + parts[i].ending, (size_t)parts[i].ending_size))
                return 0;
        }
        scan->texts.size = (size_t)scan->key;
        scan->parts.size = (size_t)scan->first_part * sizeof *parts;
    } else {
        tar_hard hard = {scan->rows, scan->first_part, scan->count, scan->key, scan->key_size};
        void* at = tar_add(&scan->hard, sizeof hard);
        if (!at) return 0;
        memcpy(at, &hard, sizeof hard);
    }
    scan->rows++;
    scan->count = scan->has_label = 0;
    return 1;
}

/* Add a file to its sample; `base` is the file, of which a short label is there. */
static inline int tar_take(tar_scan* scan, const uint8_t* base, const uint8_t* name, size_t size,
                           int64_t offset, int64_t nbytes, int is_sparse) {
    size_t begin, dot;
    if (!tar_split(name, size, scan->last_dot, &begin, &dot)) {
        scan->without_ending++;
        return TAR_END;
    }
    size_t key_size = dot - begin, ending_size = size - dot - 1;
    if (size > TAR_LONGEST_NAME || ending_size > TAR_LONGEST_ENDING)
        return tar_fail(scan, "the name of a file is too long");
    if (!scan->count || scan->key_size != (int64_t)key_size ||
        memcmp(scan->texts.data + scan->key, name + begin, key_size)) {
        if (!tar_close(scan)) return TAR_NO_MEMORY;
        scan->key = (int64_t)scan->texts.size, scan->key_size = (int64_t)key_size;
        scan->first_part = (int64_t)(scan->parts.size / sizeof(tar_part));
        uint8_t* key = (uint8_t*)tar_add(&scan->texts, key_size);
        if (!key) return TAR_NO_MEMORY;
        memcpy(key, name + begin, key_size);
    }
    tar_part part = {offset, nbytes, (int64_t)scan->texts.size, (int64_t)ending_size, 0, is_sparse};
    uint8_t* ending = (uint8_t*)tar_add(&scan->texts, ending_size);
    if (!ending) return TAR_NO_MEMORY;
    for (size_t i = 0; i < ending_size; i++) {
        uint8_t byte = name[dot + 1 + i];
        ending[i] = byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
    }
    part.kind = tar_kind(scan, ending, ending_size);
    if (scan->count >= TAR_MOST_PARTS && part.kind == TAR_OTHER) {
        int counted = tar_tally_one(scan, ending, ending_size);
        scan->texts.size -= ending_size;
        return counted ? TAR_END : TAR_NO_MEMORY;
    }
    if (scan->reads_labels && part.kind == TAR_CLASS && nbytes <= TAR_SHORT_LABEL && !is_sparse)
        scan->has_label = tar_read_label(base + offset, (size_t)nbytes, &scan->label);
    void* at = tar_add(&scan->parts, sizeof part);
    if (!at) return TAR_NO_MEMORY;
    memcpy(at, &part, sizeof part);
    scan->count++;
    return TAR_END;
}

/* -- the scan ----------------------------------------------------------------------------------- */

static inline int tar_more(tar_scan* scan, int64_t begin, int64_t end) {
    scan->want_begin = begin, scan->want_end = end < scan->size ? end : scan->size;
    return TAR_MORE;
}

/* Have a header come into the cache, and the beginning of the file behind it, which may be a label. */
static inline void tar_prefetch(const uint8_t* base, int64_t at, int64_t end) {
#if defined(__GNUC__)
    if (at > end - 2 * TAR_BLOCK) return;
    for (int i = 0; i <= TAR_BLOCK; i += 64)
        __builtin_prefetch(base + at + i);
#else
    (void)base, (void)at, (void)end;
#endif
}

/* Go on from header to header, as far as the file is in memory: bytes [0, end) of it, without those
 * before the last position that was wanted. */
static inline int tar_run(tar_scan* scan, const uint8_t* base, int64_t end) {
    for (;;) {
        int64_t at = scan->position, data = at + TAR_BLOCK;
        if (at >= scan->size)
            return tar_fail(scan,
                            "it ends without its end marker; if all is there, append 1024 bytes of zeros");
        if (data > scan->size) return tar_fail(scan, "it ends within a header");
        int64_t need = data + TAR_BLOCK < scan->size ? data + TAR_BLOCK : scan->size;
        if (need > end) return tar_more(scan, at, need);
        const uint8_t* header = base + at;
        if (!header[0] && tar_is_zero(header)) {
            return tar_close(scan) ? TAR_END : TAR_NO_MEMORY;
        }
        int64_t size = tar_number(header + 124, 12);
        if (size >= 0) tar_prefetch(base, data + tar_padded(size), end);
        if (!tar_sum_is_right(header)) return tar_fail(scan, "the checksum of a header is wrong");
        if (size < 0) return tar_fail(scan, "the size in a header is no number");
        uint8_t type = header[156];
        if (type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g') {
            if (size > scan->size - data) return tar_fail(scan, "it ends within a header");
            scan->extended += TAR_BLOCK + tar_padded(size);
            if (scan->extended > TAR_MOST_EXTENDED)
                return tar_fail(scan, "the headers of a file are too long");
            if (data + size > end) {
                scan->extended -= TAR_BLOCK + tar_padded(size);
                return tar_more(scan, at, data + size);
            }
            if (type == 'L' && scan->name_size < 0) {
                size_t length = tar_text_size(base + data, (size_t)size);
                if (!tar_take_name(base + data, length, scan->name, &scan->name_size))
                    return tar_fail(scan, "the name of a file is too long");
            } else if (type != 'K' && type != 'L') {
                int status = tar_read_pax(scan, base + data, (size_t)size, type == 'g');
                if (status) return status;
            }
            scan->position = data + tar_padded(size);
            continue;
        }
        int is_regular = type == '0' || type == 0 || type == '7' || type == 'S';
        int has_data = is_regular || type < '0' || type > '7';
        int is_sparse = scan->is_sparse || type == 'S';
        for (int more = type == 'S' && header[482]; more; data += TAR_BLOCK) {
            if (data + TAR_BLOCK > scan->size) return tar_fail(scan, "it ends within a header");
            if (data - at > TAR_MOST_EXTENDED) return tar_fail(scan, "the headers of a file are too long");
            if (data + TAR_BLOCK > end) return tar_more(scan, at, data + TAR_BLOCK);
            more = base[data + 504];
        }
        if (scan->member_size >= 0) size = scan->member_size;
        if (has_data && size > scan->size - data)
            return tar_fail(scan, "it ends within a file that should be longer");
        uint8_t joined[256];
        const uint8_t* name = scan->name;
        size_t name_size;
        if (scan->name_size >= 0) {
            name_size = (size_t)scan->name_size;
        } else if (scan->global_name_size >= 0) {
            name = scan->global_name, name_size = (size_t)scan->global_name_size;
        } else {
            name = header, name_size = tar_text_size(header, 100);
            size_t prefix = type == 'S' ? 0 : tar_text_size(header + 345, 155);
            if (prefix) {
                memcpy(joined, header + 345, prefix);
                joined[prefix] = '/';
                memcpy(joined + prefix + 1, header, name_size);
                name = joined, name_size += prefix + 1;
            }
        }
        int is_folder = type == '5' || (type == 0 && name_size && name[name_size - 1] == '/');
        if (is_regular && !is_folder) {
            int status = tar_take(scan, base, name, name_size, data, size, is_sparse);
            if (status) return status;
        } else if (!is_folder) {
            scan->no_files++;
        }
        tar_forget(scan);
        scan->position = has_data ? data + tar_padded(size) : data;
    }
}

/* Read a number of an index, and the space behind it; -1 if there is none. */
static inline int64_t tar_listed_number(const uint8_t** at, const uint8_t* end) {
    int64_t number = 0;
    const uint8_t* text = *at;
    for (; text < end && *text >= '0' && *text <= '9' && number < (int64_t)1 << 58; text++)
        number = number * 10 + (*text - '0');
    if (text == *at || text == end || *text != ' ') return -1;
    *at = text + 1;
    return number;
}

/* Add the files that lines of an index of DALI name: "ENDING OFFSET SIZE NAME" for each file of a
 * sample.  Those that do not lie right behind the header that follows the file before are `odd`, and so
 * are some others. */
static inline int tar_take_lines(tar_scan* scan, const uint8_t* base, const uint8_t* at, size_t size) {
    const uint8_t *begin = at, *end = at + size;
    size_t next = 0;
    while (at < end) {
        const uint8_t* space = (const uint8_t*)memchr(at, ' ', (size_t)(end - at));
        if (!space) return tar_fail(scan, "a line of the index is damaged");
        const uint8_t* ending = at;
        size_t ending_size = (size_t)(space - at);
        at = space + 1;
        int64_t offset = tar_listed_number(&at, end), nbytes = tar_listed_number(&at, end);
        const uint8_t* name = at;
        while (at < end && *at > ' ' && *at < 0x7f && *at != '\\')
            at++;
        size_t name_size = (size_t)(at - name);
        if (offset < scan->position + TAR_BLOCK || nbytes < 0 || offset > scan->size - nbytes ||
            offset % TAR_BLOCK || at == end || (*at != ' ' && *at != '\n') || name_size < ending_size + 2 ||
            memcmp(name + name_size - ending_size, ending, ending_size) ||
            name[name_size - ending_size - 1] != '.')
            return tar_fail(scan, "a line of the index is damaged, or of another file");
        at++;
        if (offset != scan->position + TAR_BLOCK || (size_t)(at - begin) > next) {
            next = (size_t)(at - begin) + size / TAR_COMPARED;
            if (!tar_add_number(&scan->odd, offset) || !tar_add_number(&scan->odd, nbytes) ||
                !tar_add_number(&scan->odd, name - begin) || !tar_add_number(&scan->odd, (int64_t)name_size))
                return TAR_NO_MEMORY;
        }
        int status = tar_take(scan, base, name, name_size, offset, nbytes, 0);
        if (status) return status;
        scan->position = offset + tar_padded(nbytes);
    }
    return tar_close(scan) ? TAR_END : TAR_NO_MEMORY;
}

static inline void tar_begin(tar_scan* scan, int64_t size) {
    memset(scan, 0, sizeof *scan);
    scan->size = size, scan->reads_labels = 1;
    scan->global_name_size = -1;
    tar_forget(scan);
}

static inline void tar_free(tar_scan* scan) {
    tar_table* tables[] = {&scan->offsets, &scan->sizes, &scan->labels, &scan->names,   &scan->name_starts,
                           &scan->parts,   &scan->texts, &scan->hard,   &scan->tallies, &scan->odd};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(tables[i]->data);
}

#endif
