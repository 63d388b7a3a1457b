"""Arrays in one file: a complete Zarr v3 group in a zip, which plain zarr opens, read back with nothing on trust.

What a file claims of itself is checked before anything is allocated or decoded: a bomb, a lie or a foreign codec is a
ValueError, and no array takes more than MAX_ARRAY_BYTES.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import zarr
from numcodecs.zstd import Zstd
from numpy.typing import DTypeLike, NDArray
from zarr.codecs import ZstdCodec
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

MAX_BYTES: Final = 1 << 28
"""Of a file; no reader opens a larger one."""

MAX_ARRAY_BYTES: Final = 1 << 28
MAX_METADATA_BYTES: Final = 1 << 20
MAX_MEMBERS: Final = 1000


def pack(arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> bytes:
    """Return a file with `arrays`, by name, one checksummed chunk each. The same arrays always give the same bytes."""
    nodes: dict[str, dict[str, Any]] = {}
    chunks: dict[str, bytes] = {}
    for name, data in arrays.items():
        for parent in _parents(name):
            nodes[parent] = _group_metadata()
        nodes[name] = _array_metadata(data.dtype, data.shape)
        little = np.ascontiguousarray(data, data.dtype.newbyteorder("<"))
        chunks["/".join([name, "c", *["0"] * data.ndim])] = Zstd(level=1, checksum=True).encode(little)
    consolidated = {"kind": "inline", "must_understand": False, "metadata": dict(sorted(nodes.items()))}
    nodes[""] = {**_group_metadata(), "attributes": dict(attributes), "consolidated_metadata": consolidated}
    members = {f"{name}/zarr.json".lstrip("/"): json.dumps(node).encode() for name, node in nodes.items()} | chunks
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for key in sorted(members):
            member = zipfile.ZipInfo(key, (1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED if key.endswith("zarr.json") else zipfile.ZIP_STORED
            archive.writestr(member, members[key])
    return file.getvalue()


def _parents(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


@cache
def _made_by_zarr(dtype: str, dimensions: int) -> tuple[str, str]:
    """Return, as JSON, what zarr writes about a group and about an array of this kind in it."""
    members: dict[str, Buffer] = {}
    group = zarr.create_group(MemoryStore(members), zarr_format=3)
    compressor = ZstdCodec(level=1, checksum=True)
    group.create_array("a", shape=(1,) * dimensions, chunks=(1,) * dimensions, dtype=dtype, compressors=compressor)
    return members["zarr.json"].to_bytes().decode(), members["a/zarr.json"].to_bytes().decode()


def _group_metadata() -> dict[str, Any]:
    group: dict[str, Any] = json.loads(_made_by_zarr("uint8", 1)[0])
    return group


def _array_metadata(dtype: np.dtype[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """zarr's own words with another shape: to have it write every array costs ten times as much as the data."""
    array: dict[str, Any] = json.loads(_made_by_zarr(dtype.name, len(shape))[1])
    array["shape"] = list(shape)
    array["chunk_grid"]["configuration"]["chunk_shape"] = [max(1, n) for n in shape]
    return array


class Archive:
    """An opened file. Every method raises ValueError or one of zipfile's errors for what is not as it should be."""

    def __init__(self, content: bytes) -> None:
        if content.count(b"PK\1\2") > MAX_MEMBERS:  # of the directory, which zipfile would read first
            raise ValueError(f"more than {MAX_MEMBERS} members")
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        names = self._zip.namelist()
        if len(set(names)) < len(names):
            raise ValueError("two members of one name")
        attributes = self._metadata("zarr.json").get("attributes")
        if not isinstance(attributes, dict):
            raise ValueError("no attributes")
        self.attributes: dict[str, Any] = attributes

    def read(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the array `name`, which has to have this type and shape."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        if size > MAX_ARRAY_BYTES:
            raise ValueError(f"{name} would take {size} bytes")
        metadata = self._metadata(f"{name}/zarr.json")
        expected: dict[str, object] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [max(1, n) for n in shape]}},
            "storage_transformers": [],
        }
        for key, value in expected.items():
            if metadata.get(key, []) != value:
                raise ValueError(f"{name}: {key} is {metadata.get(key)!r}, not {value!r}")
        if [codec["name"] for codec in metadata["codecs"]] != ["bytes", "zstd"]:
            raise ValueError(f"{name}: the codecs are {metadata['codecs']!r}, not bytes and zstd")
        if metadata["codecs"][0].get("configuration", {}).get("endian", "little") != "little":
            raise ValueError(f"{name} is not little-endian")
        largest = size + (size >> 7) + 1024  # zstd adds less to what it cannot compress
        chunk = self._member("/".join([name, "c", *["0"] * len(shape)]), max_bytes=largest)
        if _decoded_size(chunk) != size:
            raise ValueError(f"{name}: its chunk would not decode to {size} bytes with a checksum")
        return np.frombuffer(Zstd().decode(chunk), dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)

    def _metadata(self, name: str) -> dict[str, Any]:
        metadata = json.loads(self._member(name, max_bytes=MAX_METADATA_BYTES))
        if not isinstance(metadata, dict):
            raise ValueError(f"{name} is not an object")
        return metadata

    def _member(self, name: str, *, max_bytes: int) -> bytes:
        member = self._zip.getinfo(name)
        if member.file_size > max_bytes or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name}: {member.file_size} bytes of compression {member.compress_type}")
        with self._zip.open(member) as file:
            return file.read(member.file_size)  # no more than it claims; at its end its checksum has to be right


def _decoded_size(frame: bytes) -> int:
    """Return what a zstd frame says it decodes to; -1 if it does not say, or has no checksum (RFC 8878, 3.1.1.1)."""
    magic, descriptor = struct.unpack_from("<IB", frame)
    single, checksum, dictionary = descriptor >> 5 & 1, descriptor >> 2 & 1, descriptor & 3
    width = {0: single, 1: 2, 2: 4, 3: 8}[descriptor >> 6]
    if magic != 0xFD2FB528 or not checksum or dictionary or not width:
        return -1
    at = 5 if single else 6
    return int.from_bytes(frame[at : at + width], "little") + (256 if width == 2 else 0)
