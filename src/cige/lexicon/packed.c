/* User words in little memory: a table of hashes of whole words, and a filter of hashes of their beginnings, over one
 * block of text. packed_words.py describes both, and has the same in Python. Written for the limited API, so one build
 * serves every Python.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)0)
#endif

enum { N_SMALL = 1024, AHEAD = 16 };
static const uint64_t FIRST_HASH = 0x243F6A8885A308D3u, MULTIPLIER = 0x9E3779B97F4A7C15u;

typedef struct { /* as packed_words.py packs it; addresses first */
    uint64_t blob, offsets, slots, tags, filter, n_words, n_slots, n_filter, max_chars, has_single;
} Packed;

typedef struct {
    int32_t start, end, number;
} Row;

typedef struct {
    Row *rows;
    size_t n, capacity;
    Row small[N_SMALL];
} RowList;

static uint64_t next_hash(uint64_t hash, uint32_t character)
{
    hash = (hash ^ character) * MULTIPLIER;
    return hash ^ hash >> 32;
}

static uint64_t *filter_of(const Packed *p, uint64_t hash)
{
    return (uint64_t *)(uintptr_t)p->filter + ((hash & 0xFFFFFFFF) * p->n_filter >> 32);
}

static uint64_t bits_of(uint64_t hash) { return (uint64_t)1 << (hash >> 32 & 63) | (uint64_t)1 << (hash >> 38 & 63); }

/* The next code point of valid UTF-8, and its length. */
static uint32_t decoded(const uint8_t *s, int *n_bytes)
{
    if (s[0] < 0x80)
        return *n_bytes = 1, s[0];
    if (s[0] < 0xE0)
        return *n_bytes = 2, (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    if (s[0] < 0xF0)
        return *n_bytes = 3, (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    *n_bytes = 4;
    return (uint32_t)(s[0] & 7) << 18 | (uint32_t)(s[1] & 0x3F) << 12 | (uint32_t)(s[2] & 0x3F) << 6 | (s[3] & 0x3F);
}

/* Whether word `number` has just these code points. */
static int is_word(const Packed *p, uint32_t number, const uint32_t *text, int64_t n_chars)
{
    const uint32_t *offsets = (const uint32_t *)(uintptr_t)p->offsets;
    const uint8_t *s = (const uint8_t *)(uintptr_t)p->blob + offsets[number];
    const uint8_t *end = (const uint8_t *)(uintptr_t)p->blob + offsets[number + 1] - 1;
    int n_bytes;
    for (int64_t i = 0; i < n_chars; i++, s += n_bytes)
        if (s >= end || decoded(s, &n_bytes) != text[i])
            return 0;
    return s == end;
}

/* The number of a word with this hash, or -1; `slot` is where it is or would be. */
static int64_t look_up(const Packed *p, uint64_t hash, const uint32_t *text, int64_t n_chars, uint64_t *slot)
{
    const uint32_t *slots = (const uint32_t *)(uintptr_t)p->slots;
    const uint8_t *tags = (const uint8_t *)(uintptr_t)p->tags;
    for (*slot = (hash >> 32) * p->n_slots >> 32; slots[*slot]; *slot = *slot + 1 == p->n_slots ? 0 : *slot + 1)
        if (tags[*slot] == (hash & 0xFF) && is_word(p, slots[*slot] - 1, text, n_chars))
            return slots[*slot] - 1;
    return -1;
}

static int append(RowList *list, Row row)
{
    if (list->n == list->capacity) {
        const size_t capacity = 2 * list->capacity;
        const int is_small = list->rows == list->small;
        Row *rows = realloc(is_small ? NULL : list->rows, capacity * sizeof(Row));
        if (rows == NULL)
            return 1;
        if (is_small)
            memcpy(rows, list->small, sizeof(list->small));
        list->rows = rows;
        list->capacity = capacity;
    }
    list->rows[list->n++] = row;
    return 0;
}

/* Every word in a text, sorted by start and end; 1 where memory ran out. */
static int find_all(const Packed *p, const uint32_t *text, int64_t n_chars, RowList *found)
{
    uint64_t slot, pairs[AHEAD]; /* hashes of two characters, whose filters are asked for before they are read */
    for (int64_t start = 0; start < n_chars; start++) {
        if (start % AHEAD == 0)
            for (int64_t k = start; k < start + AHEAD && k + 1 < n_chars; k++) {
                pairs[k % AHEAD] = next_hash(next_hash(FIRST_HASH, text[k]), text[k + 1]);
                PREFETCH(filter_of(p, pairs[k % AHEAD]));
            }
        uint64_t hash = next_hash(FIRST_HASH, text[start]);
        for (int64_t n = 1; n <= (int64_t)p->max_chars && start + n <= n_chars; n++) {
            if (n == 1 && !p->has_single)
                continue;
            if (n > 1)
                hash = n == 2 ? pairs[start % AHEAD] : next_hash(hash, text[start + n - 1]);
            const uint64_t bits = bits_of(hash);
            if ((*filter_of(p, hash) & bits) != bits) {
                if (n == 1)
                    continue;
                break;
            }
            const int64_t number = look_up(p, hash, text + start, n, &slot);
            if (number >= 0 && append(found, (Row){(int32_t)start, (int32_t)(start + n), (int32_t)number}))
                return 1;
        }
    }
    return 0;
}

/* The code points of word k of a blob in `text`, which has room for `room`; how many, or -1 where it has more. */
static int64_t chars_of(const uint8_t *blob, const uint32_t *offsets, int64_t k, uint32_t *text, int64_t room)
{
    int64_t n_chars = 0;
    int n_bytes;
    for (const uint8_t *s = blob + offsets[k], *end = blob + offsets[k + 1] - 1; s < end; s += n_bytes) {
        if (n_chars == room)
            return -1;
        text[n_chars++] = decoded(s, &n_bytes);
    }
    return n_chars;
}

static const Packed *packed_of(PyObject *given)
{
    if (PyBytes_Check(given) && PyBytes_Size(given) == sizeof(Packed))
        return (const Packed *)PyBytes_AsString(given);
    PyErr_SetString(PyExc_TypeError, "expected the bytes of packed words");
    return NULL;
}

static void *address_of(PyObject *number) { return (void *)(uintptr_t)PyLong_AsUnsignedLongLong(number); }

/* measure(blob, offsets, n) -> (characters of all words, of the longest, words of one character) */
static PyObject *measure(PyObject *module, PyObject *const *arguments, Py_ssize_t n_arguments)
{
    (void)module;
    if (n_arguments != 3)
        return PyErr_Format(PyExc_TypeError, "expected measure(blob, offsets, n)");
    const uint8_t *blob = address_of(arguments[0]);
    const uint32_t *offsets = address_of(arguments[1]);
    const int64_t n = PyLong_AsLongLong(arguments[2]);
    long long total = 0, longest = 0, n_single = 0;
    if (PyErr_Occurred())
        return NULL;
    for (int64_t k = 0; k < n; k++) {
        long long own = 0;
        for (const uint8_t *s = blob + offsets[k], *end = blob + offsets[k + 1] - 1; s < end; s++)
            own += (*s & 0xC0) != 0x80;
        total += own;
        longest = own > longest ? own : longest;
        n_single += own == 1;
    }
    return Py_BuildValue("LLL", total, longest, n_single);
}

/* fill(packed, first): slots, tags and filter of all words, which arrive zeroed; uint32 first[n] is given the number of
   the first word that is equal. Returns how many are equal to an earlier one. */
static PyObject *fill(PyObject *module, PyObject *const *arguments, Py_ssize_t n_arguments)
{
    (void)module;
    const Packed *p = n_arguments == 2 ? packed_of(arguments[0]) : NULL;
    if (p == NULL)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected fill(packed, first)");
    uint32_t *first = address_of(arguments[1]), *text = malloc((p->max_chars + 1) * sizeof(uint32_t));
    if (PyErr_Occurred() || text == NULL) {
        free(text);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    long long n_equal = 0;
    for (uint64_t k = 0; k < p->n_words; k++) {
        const int64_t n = chars_of((const uint8_t *)(uintptr_t)p->blob, (const uint32_t *)(uintptr_t)p->offsets,
                                   (int64_t)k, text, (int64_t)p->max_chars);
        uint64_t hash = FIRST_HASH, slot;
        for (int64_t i = 0; i < n; i++) {
            hash = next_hash(hash, text[i]);
            if (i > 0 || n == 1)
                *filter_of(p, hash) |= bits_of(hash);
        }
        const int64_t equal = look_up(p, hash, text, n, &slot);
        first[k] = (uint32_t)(equal < 0 ? (int64_t)k : equal);
        n_equal += equal >= 0;
        if (equal < 0) {
            ((uint32_t *)(uintptr_t)p->slots)[slot] = (uint32_t)k + 1;
            ((uint8_t *)(uintptr_t)p->tags)[slot] = (uint8_t)hash;
        }
    }
    free(text);
    return PyLong_FromLongLong(n_equal);
}

/* numbers(packed, blob, offsets, n, out): int64 out[n], of each other word its number, or -1. */
static PyObject *numbers(PyObject *module, PyObject *const *arguments, Py_ssize_t n_arguments)
{
    (void)module;
    const Packed *p = n_arguments == 5 ? packed_of(arguments[0]) : NULL;
    if (p == NULL)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected numbers(packed, blob, offsets, n, out)");
    const uint8_t *blob = address_of(arguments[1]);
    const uint32_t *offsets = address_of(arguments[2]);
    const int64_t n = PyLong_AsLongLong(arguments[3]);
    int64_t *out = address_of(arguments[4]);
    uint32_t *text = malloc((p->max_chars + 1) * sizeof(uint32_t));
    if (PyErr_Occurred() || text == NULL) {
        free(text);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t n_chars = chars_of(blob, offsets, k, text, (int64_t)p->max_chars);
        uint64_t hash = FIRST_HASH, slot;
        for (int64_t i = 0; i < n_chars; i++)
            hash = next_hash(hash, text[i]);
        out[k] = n_chars <= 0 ? -1 : look_up(p, hash, text, n_chars, &slot);
    }
    free(text);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *find(PyObject *module, PyObject *const *arguments, Py_ssize_t n_arguments)
{
    (void)module;
    if (n_arguments != 2 || !PyUnicode_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "expected find(text: str, packed: bytes)");
    const Packed *p = packed_of(arguments[1]);
    if (p == NULL)
        return NULL;
    Py_UCS4 small[N_SMALL], *text = small;
    const Py_ssize_t n_chars = PyUnicode_GetLength(arguments[0]);
    text = n_chars > N_SMALL ? PyUnicode_AsUCS4Copy(arguments[0]) : PyUnicode_AsUCS4(arguments[0], small, N_SMALL, 0);
    if (text == NULL)
        return NULL;
    RowList all;
    all.rows = all.small, all.n = 0, all.capacity = N_SMALL;
    PyObject *result = find_all(p, text, n_chars, &all)
                           ? PyErr_NoMemory()
                           : PyByteArray_FromStringAndSize((const char *)all.rows, (Py_ssize_t)(all.n * sizeof(Row)));
    if (all.rows != all.small)
        free(all.rows);
    if (text != small)
        PyMem_Free(text);
    return result;
}

/* trim(): gives memory that was freed back to the system, which glibc keeps up to 64 MB of. */
static PyObject *trim(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    Py_INCREF(Py_None);
    return Py_None;
}

static PyMethodDef methods[] = {
    {"trim", trim, METH_NOARGS, "trim() gives freed memory back to the system"},
    {"measure", (PyCFunction)(void (*)(void))measure, METH_FASTCALL, "(blob, offsets, n) -> characters, most, singles"},
    {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL, "(packed, first) -> number of words that come again"},
    {"numbers", (PyCFunction)(void (*)(void))numbers, METH_FASTCALL, "(packed, blob, offsets, n, out)"},
    {"find", (PyCFunction)(void (*)(void))find, METH_FASTCALL, "(text, packed) -> bytearray of int32[n, 3], sorted"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_packed", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__packed(void) { return PyModule_Create(&module); }
