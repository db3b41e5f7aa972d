/* Finding words in a text, for Python (trie.c does it). Written for the limited API, so one build serves every Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "trie.h"

static int kind_of(Py_UCS4 c) /* 1: a digit, 2: a Latin letter, 0: anything else */
{
    return c >= '0' && c <= '9' ? 1 : (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? 2 : 0;
}

static int cuts_a_run(const Py_UCS4 *text, Py_ssize_t n_chars, Py_ssize_t place)
{
    const int before = place > 0 ? kind_of(text[place - 1]) : 0;
    return before && place < n_chars && kind_of(text[place]) == before;
}

/* Leaves out the rows of words that begin or end inside a run of letters or of digits, as matcher.py does. */
static void keep_whole(const Py_UCS4 *text, Py_ssize_t n_chars, RowList *all)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < all->n; i++) {
        const Row row = all->rows[i];
        if (!cuts_a_run(text, n_chars, row.start) && !cuts_a_run(text, n_chars, row.end))
            all->rows[n_kept++] = row;
    }
    all->n = n_kept;
}

static PyObject *match_chars(const Trie *trie, const Py_UCS4 *text, Py_ssize_t n_chars, int is_whole)
{
    RowList all;
    PyObject *result = NULL;
    const int failed = find_words(trie, text, n_chars, &all);
    if (!failed && is_whole)
        keep_whole(text, n_chars, &all);
    if (failed == NO_MEMORY)
        PyErr_NoMemory();
    else if (failed)
        PyErr_SetString(PyExc_ValueError, "a number beyond the last word");
    else
        result = PyByteArray_FromStringAndSize((const char *)all.rows, (Py_ssize_t)(all.n * sizeof(Row)));
    free_words(&all);
    return result;
}

static PyObject *match_text(PyObject *const *arguments, Py_ssize_t n_arguments, int is_whole)
{
    if (n_arguments != 2 || !PyUnicode_Check(arguments[0]) || !PyBytes_Check(arguments[1]) ||
        PyBytes_Size(arguments[1]) != sizeof(Trie))
        return PyErr_Format(PyExc_TypeError, "expected match(text: str, trie: bytes)");
    const Trie *trie = (const Trie *)PyBytes_AsString(arguments[1]);
    Py_UCS4 small[N_SMALL], *text = small;
    Py_ssize_t n_chars = PyUnicode_GetLength(arguments[0]);
    if (n_chars > N_SMALL)
        text = PyUnicode_AsUCS4Copy(arguments[0]);
    else
        text = PyUnicode_AsUCS4(arguments[0], small, N_SMALL, 0);
    if (text == NULL)
        return NULL;
    PyObject *result = match_chars(trie, text, n_chars, is_whole);
    if (text != small)
        PyMem_Free(text);
    return result;
}

static PyObject *match(PyObject *module, PyObject *const *arguments, Py_ssize_t n_arguments)
{
    (void)module;
    return match_text(arguments, n_arguments, 0);
}

static PyObject *match_whole(PyObject *module, PyObject *const *arguments, Py_ssize_t n_arguments)
{
    (void)module;
    return match_text(arguments, n_arguments, 1);
}

static PyMethodDef methods[] = {
    {"match", (PyCFunction)(void (*)(void))match, METH_FASTCALL, "(text, trie) -> bytearray of int32[n, 3], sorted"},
    {"match_whole", (PyCFunction)(void (*)(void))match_whole, METH_FASTCALL,
     "(text, trie) -> the same without words that cut a run of Latin letters or of digits"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_walk", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__walk(void)
{
    return PyModule_Create(&module);
}
