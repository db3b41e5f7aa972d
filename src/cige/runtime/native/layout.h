/* Structs that Python and JavaScript fill. The list of a struct's fields makes the struct, and its rows in the table of
   layout.c, by which runtime/native/structs.py and web/memory.js fill it by name: the three cannot disagree. */

#ifndef CIGE_LAYOUT_H
#define CIGE_LAYOUT_H

#include <stdint.h>

#define MEMBER(STRUCT, TYPE, NAME) TYPE NAME;
#define DEFINE(STRUCT, FIELDS) typedef struct STRUCT { FIELDS(MEMBER, STRUCT) } STRUCT

/* A field. Without a name it is a struct with its size, or, without a type too, a constant of the headers and its value.
   Behind the last row `of` is NULL. */
typedef struct {
  const char *of;   /* the struct, or the constant */
  const char *name;
  const char *type; /* a number, "float32*" for an array, a struct, "Linear*", "pointer*" for addresses, or "void*" */
  int32_t offset;   /* in bytes, or the value of a constant */
  int32_t size;
} Field;

const Field *layout_of_structs(void);

#endif
