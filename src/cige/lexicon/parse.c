/* Lines of `word number ... number` -> float32, at some 500 MB/s; parse_rows is the one function.
 *
 * A line that is not exactly of this form is marked and left to Python, which knows every case and names the problem;
 * so what is taken here has the value that float() gives it, and nothing is refused here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MAX_DIGITS = 19, MAX_POWER = 22 };
static const double POWERS[MAX_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static int is_digit(char byte) { return byte >= '0' && byte <= '9'; }
static int is_blank(char byte) { return byte == ' ' || byte == '\t'; }

/* Reads a number and returns where it ends, or NULL. A mantissa below 2^53 and a power up to 10^22 are exact doubles,
 * so one multiplication or division rounds correctly; other numbers go to Python's parser. */
static const char *read_number(const char *at, float *number)
{
    const char *begin = at;
    int negative = *at == '-';
    at += negative || *at == '+';
    uint64_t mantissa = 0;
    int n_digits = 0, power = 0;
    for (; is_digit(*at); at++, n_digits++)
        mantissa = mantissa * 10 + (uint64_t)(*at - '0');
    if (*at == '.')
        for (at++; is_digit(*at); at++, n_digits++, power--)
            mantissa = mantissa * 10 + (uint64_t)(*at - '0');
    if (n_digits == 0)
        return NULL;
    if (*at == 'e' || *at == 'E') {
        const char *sign = at + 1, *digit = sign + (*sign == '-' || *sign == '+');
        int exponent = 0;
        for (at = digit; is_digit(*at) && at - digit < 5; at++)
            exponent = exponent * 10 + (*at - '0');
        if (at == digit || is_digit(*at))
            return NULL;
        power += *sign == '-' ? -exponent : exponent;
    }
    double value;
    if (n_digits <= MAX_DIGITS && mantissa <= (uint64_t)1 << 53 && power >= -MAX_POWER && power <= MAX_POWER) {
        value = (double)mantissa;
        value = power < 0 ? value / POWERS[-power] : value * POWERS[power];
        value = negative ? -value : value;
    } else {
        char *end;
        value = PyOS_string_to_double(begin, &end, NULL);
        if (end != at) {
            PyErr_Clear();
            return NULL;
        }
    }
    *number = (float)value;
    return at;
}

/* Where the word of the line ends, or NULL when the line is not a word and `width` numbers, one blank before each. */
static const char *read_line(const char *at, const char *end, Py_ssize_t width, float *numbers)
{
    while (at < end && !is_blank(*at))
        at++;
    const char *word_end = at;
    for (Py_ssize_t i = 0; i < width; i++) {
        if (at >= end || !is_blank(*at))
            return NULL;
        at = read_number(at + 1, numbers + i);
        if (at == NULL)
            return NULL;
    }
    while (at < end && (is_blank(*at) || *at == '\r'))
        at++;
    return at == end ? word_end : NULL;
}

static PyObject *parse_rows(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *block;
    Py_ssize_t width, n_rows;
    unsigned long long numbers_address, spans_address;
    if (!PyArg_ParseTuple(arguments, "SnnKK", &block, &width, &n_rows, &numbers_address, &spans_address))
        return NULL;
    float *numbers = (float *)(uintptr_t)numbers_address;
    int64_t *spans = (int64_t *)(uintptr_t)spans_address; /* [n_rows, 3]: line begin, word end or -1, line end */
    const char *text = PyBytes_AsString(block), *at = text, *stop = text + PyBytes_Size(block);
    for (Py_ssize_t row = 0; row < n_rows; row++) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        end = end == NULL ? stop : end;
        const char *word_end = read_line(at, end, width, numbers + row * width);
        spans[3 * row] = at - text;
        spans[3 * row + 1] = word_end == NULL ? -1 : word_end - text;
        spans[3 * row + 2] = end - text;
        at = end < stop ? end + 1 : stop;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"parse_rows", parse_rows, METH_VARARGS, "(block, width, n_rows, address of float32, address of int64 spans)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_parse", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__parse(void)
{
    return PyModule_Create(&module);
}
