/* An empty Python module, so that the ordinary build machinery can carry the kernels of a level. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define JOIN(A, B) A##B
#define INIT(NAME) JOIN(PyInit_, NAME) /* KERNELS_MODULE is the module's name: setup.py defines it */
#define QUOTE(NAME) #NAME
#define TEXT(NAME) QUOTE(NAME)

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(KERNELS_MODULE), NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC INIT(KERNELS_MODULE)(void) { return PyModule_Create(&module); }
