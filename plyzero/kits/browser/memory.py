"""The memory of rules in WebAssembly: what replaces the part of Numba that creates and frees arrays.

Arrays and lists that a rule creates lie in an area of fixed size, which is empty again at the next call of a rule. An
array is freed at once if it is the last one there, as the array of a loop is.
"""

from __future__ import annotations

from string import Template
from typing import Final

AREA: Final = 8 << 20
"""Bytes for all arrays that one call of a rule creates."""

# A block of Numba is a header of 32 bytes, { references, destructor, its argument, address of the data, size }, and the
# data. The names are Numba's, but for those that begin with `area`.
RUNTIME: Final = Template("""
target triple = ""
target datalayout = ""

%header = type { i64, ptr, ptr, ptr, i64 }

@area = internal global [$area x i8] zeroinitializer, align 16
@area_used = internal global i32 0

declare void @out_of_memory()

define void @area_empty() {
  store i32 0, ptr @area_used
  ret void
}

define ptr @area_take(i64 %size) noinline {
  %used = load i32, ptr @area_used
  %begin = zext i32 %used to i64
  %is_small = icmp ule i64 %size, $area
  %bounded = select i1 %is_small, i64 %size, i64 $area
  %more = add i64 %bounded, 15
  %rounded = and i64 %more, -16
  %end = add i64 %begin, %rounded
  %fits = icmp ule i64 %end, $area
  %is_room = and i1 %fits, %is_small
  br i1 %is_room, label %taken, label %full

full:
  call void @out_of_memory()
  unreachable

taken:
  %new = trunc i64 %end to i32
  store i32 %new, ptr @area_used
  %block = getelementptr i8, ptr @area, i32 %used
  ret ptr %block
}

define void @area_describe(ptr %header, ptr %data, i64 %size) {
  store %header { i64 1, ptr null, ptr null, ptr null, i64 0 }, ptr %header
  call void @area_point(ptr %header, ptr %data, i64 %size)
  ret void
}

define void @area_point(ptr %header, ptr %data, i64 %size) {
  %at_data = getelementptr %header, ptr %header, i32 0, i32 3
  store ptr %data, ptr %at_data
  %at_size = getelementptr %header, ptr %header, i32 0, i32 4
  store i64 %size, ptr %at_size
  ret void
}

define ptr @area_block(i64 %size) {
  %whole = add i64 %size, 32
  %header = call ptr @area_take(i64 %whole)
  %data = getelementptr i8, ptr %header, i32 32
  call void @area_describe(ptr %header, ptr %data, i64 %size)
  ret ptr %header
}

define ptr @area_list(i64 %size) {
  %header = call ptr @area_take(i64 32)
  %data = call ptr @area_take(i64 %size)
  call void @area_describe(ptr %header, ptr %data, i64 %size)
  ret ptr %header
}

define ptr @NRT_Allocate(i64 %size) {
  %block = call ptr @area_take(i64 %size)
  ret ptr %block
}

define void @NRT_Free(ptr %block) {
  ret void
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %header = call ptr @area_block(i64 %size)
  ret ptr %header
}

define ptr @NRT_MemInfo_alloc_safe(i64 %size) {
  %header = call ptr @area_block(i64 %size)
  ret ptr %header
}

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %header = call ptr @area_block(i64 %size)
  ret ptr %header
}

define ptr @NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %align) {
  %header = call ptr @area_block(i64 %size)
  ret ptr %header
}

define ptr @NRT_MemInfo_new_varsize(i64 %size) {
  %header = call ptr @area_list(i64 %size)
  ret ptr %header
}

define ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr %destructor) {
  %header = call ptr @area_list(i64 %size)
  ret ptr %header
}

define ptr @NRT_MemInfo_varsize_alloc(ptr %header, i64 %size) {
  %data = call ptr @area_take(i64 %size)
  call void @area_point(ptr %header, ptr %data, i64 %size)
  ret ptr %data
}

define ptr @NRT_MemInfo_varsize_realloc(ptr %header, i64 %size) {
  %at_data = getelementptr %header, ptr %header, i32 0, i32 3
  %old = load ptr, ptr %at_data
  %at_size = getelementptr %header, ptr %header, i32 0, i32 4
  %before = load i64, ptr %at_size
  %grows = icmp ugt i64 %size, %before
  %kept = select i1 %grows, i64 %before, i64 %size
  %data = call ptr @area_take(i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %data, ptr %old, i64 %kept, i1 false)
  call void @area_point(ptr %header, ptr %data, i64 %size)
  ret ptr %data
}

define void @NRT_MemInfo_varsize_free(ptr %header, ptr %data) {
  ret void
}

define void @NRT_MemInfo_call_dtor(ptr %header) {
  %at_data = getelementptr %header, ptr %header, i32 0, i32 3
  %data = load ptr, ptr %at_data
  %at_size = getelementptr %header, ptr %header, i32 0, i32 4
  %size = load i64, ptr %at_size
  %usual = getelementptr i8, ptr %header, i32 32
  %is_array = icmp eq ptr %data, %usual
  %bytes = trunc i64 %size to i32
  %more = add i32 %bytes, 47
  %whole = and i32 %more, -16
  %at = ptrtoint ptr %header to i32
  %first = ptrtoint ptr @area to i32
  %begin = sub i32 %at, %first
  %end = add i32 %begin, %whole
  %used = load i32, ptr @area_used
  %is_last = icmp eq i32 %end, %used
  %is_free = and i1 %is_array, %is_last
  br i1 %is_free, label %freed, label %kept

freed:
  store i32 %begin, ptr @area_used
  ret void

kept:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
""").substitute(area=AREA)
"""Functions that Numba's code calls to create and to free arrays, as LLVM code."""

ENTRY: Final = Template("""
declare void @area_empty()
declare void @rule_raises()

define $kind @$rule($parameters) {
  %result = alloca $stored
  %exception = alloca ptr
  call void @area_empty()
  %status = call i32 @"$function"(ptr %result, ptr %exception, $parameters)
  %is_done = icmp eq i32 %status, 0
  %is_none = icmp eq i32 %status, -2
  %is_fine = or i1 %is_done, %is_none
  br i1 %is_fine, label %fine, label %raises

raises:
  call void @rule_raises()
  unreachable

fine:
  $give_back
}
""")

PARAMETERS: Final = {
    "play": "ptr %state, i64 %action",
    "outcome": "ptr %state",
    "legal": "ptr %state, ptr %array",
    "observe": "ptr %state, ptr %array",
    "chances": "ptr %state, ptr %array",
    "score": "ptr %state",
}

RESULTS: Final = {"outcome": "i64", "score": "double"}


def entry_of(rule: str, function: str) -> str:
    """Return the exported function of a rule, as LLVM code to be appended to that of the rule.

    function: the name of the rule in that code. Where it raises an exception, the import `rule_raises` is called.
    """
    result = RESULTS.get(rule, "")
    give_back = f"%found = load {result}, ptr %result\n  ret {result} %found" if result else "ret void"
    return ENTRY.substitute(
        rule=rule,
        function=function,
        parameters=PARAMETERS[rule],
        kind=result or "void",
        stored=result or "ptr",
        give_back=give_back,
    )
