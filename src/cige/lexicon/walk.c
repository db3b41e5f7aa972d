/* Finding words in a text, for Python (trie.c does it). Written for the limited API, so one build serves every Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "trie.h"

static PyObject *match_chars(const Trie *trie, const Py_UCS4 *text, Py_ssize_t n_chars)
{
    RowList all;
    PyObject *result = NULL;
    const int failed = find_words(trie, text, n_chars, &all);
    if (failed == NO_MEMORY)
        PyErr_NoMemory();
    else if (failed)
        PyErr_SetString(PyExc_ValueError, "a number beyond the last word");
    else
        result = PyByteArray_FromStringAndSize((const char *)all.rows, (Py_ssize_t)(all.n * sizeof(Row)));
    free_words(&all);
    return result;
}

static PyObject *match(PyObject *module, PyObject *const *arguments, Py_ssize_t n_arguments)
{
    (void)module;
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
    PyObject *result = match_chars(trie, text, n_chars);
    if (text != small)
        PyMem_Free(text);
    return result;
}

static PyMethodDef methods[] = {
    {"match", (PyCFunction)(void (*)(void))match, METH_FASTCALL, "(text, trie) -> bytearray of int32[n, 3], sorted"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_walk", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__walk(void)
{
    return PyModule_Create(&module);
}
