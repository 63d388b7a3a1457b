"""Arrays in one file: a complete Zarr v3 group in a zip file that zarr can open. Files that are read are not trusted.

Sizes, types and codecs in the metadata are checked before anything is allocated or decoded: a decompression bomb, a
wrong size or an unexpected codec raises ValueError, and no array takes more than MAX_ARRAY_BYTES.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

import numpy as np
import zarr
from numcodecs.zstd import Zstd
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

MAX_BYTES: Final = 1 << 28
"""Largest size of a file that is read, in bytes."""

MAX_ARRAY_BYTES: Final = 1 << 28
"""Largest size of a decoded array, in bytes."""

MAX_MEMBERS: Final = 1000
"""Largest number of members in the zip file."""

Scalar = TypeVar("Scalar", bound=np.generic)


def pack(arrays: Mapping[str, NDArray[np.generic]], attributes: Mapping[str, object]) -> bytes:
    """Return the content of a file with `arrays`, name -> array, each as one chunk with a checksum, and `attributes`.

    The same arrays and attributes always give the same bytes.
    """
    nodes: dict[str, dict[str, object]] = {}
    chunks: dict[str, bytes] = {}
    for name, data in arrays.items():
        for parent in [*PurePosixPath(name).parents][:-1]:
            nodes[str(parent)] = _group_metadata()
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


@cache
def _zarr_metadata(dtype: str, dimensions: int) -> tuple[str, str]:
    """Return the JSON metadata that zarr writes for a group, and for an array of this type in it."""
    members: dict[str, Buffer] = {}
    group = zarr.create_group(MemoryStore(members), zarr_format=3)
    compressor = ZstdCodec(level=1, checksum=True)
    group.create_array("a", shape=(1,) * dimensions, chunks=(1,) * dimensions, dtype=dtype, compressors=compressor)
    return members["zarr.json"].to_bytes().decode(), members["a/zarr.json"].to_bytes().decode()


def _group_metadata() -> dict[str, object]:
    group: dict[str, object] = json.loads(_zarr_metadata("uint8", 1)[0])
    return group


def _array_metadata(dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> dict[str, object]:
    """Return zarr's metadata with another shape; writing every array with zarr takes ten times as long as the data."""
    array: dict[str, Any] = json.loads(_zarr_metadata(dtype.name, len(shape))[1])
    array["shape"] = list(shape)
    array["chunk_grid"]["configuration"]["chunk_shape"] = [max(1, n) for n in shape]
    return array


class Archive:
    """A file opened for reading. Every method raises ValueError or one of zipfile's errors for an invalid file.

    attributes: the attributes of the root group.
    """

    def __init__(self, content: bytes) -> None:
        if content.count(b"PK\1\2") > MAX_MEMBERS:  # zipfile would read the headers of all of them at once
            raise ValueError(f"more than {MAX_MEMBERS} members")
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        names = self._zip.namelist()
        if len(set(names)) < len(names):
            raise ValueError("two members have the same name")
        attributes = self._metadata("zarr.json").get("attributes")
        if not isinstance(attributes, dict):
            raise ValueError("the root group has no attributes")
        self.attributes: dict[str, object] = attributes

    def read(self, name: str, dtype: np.dtype[Scalar] | type[Scalar], shape: tuple[int, ...]) -> NDArray[Scalar]:
        """Return the array `name`. Raises ValueError if it does not have this type and shape."""
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
        largest = size + (size >> 7) + 1024  # zstd adds less than this to incompressible data
        chunk = self._member("/".join([name, "c", *["0"] * len(shape)]), max_bytes=largest)
        if _decoded_size(chunk) != size:
            raise ValueError(f"{name}: expected a chunk that decodes to {size} bytes and has a checksum")
        return np.frombuffer(Zstd().decode(chunk), dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)

    def data_type(self, name: str) -> str | None:
        """Return the type of the elements of the array `name`, None if there is no such array."""
        file = f"{name}/zarr.json"
        return str(self._metadata(file).get("data_type")) if file in self._zip.namelist() else None

    def _metadata(self, name: str) -> dict[str, Any]:
        metadata = json.loads(self._member(name, max_bytes=1 << 20))
        if not isinstance(metadata, dict):
            raise ValueError(f"{name} is not a JSON object")
        return metadata

    def _member(self, name: str, *, max_bytes: int) -> bytes:
        member = self._zip.getinfo(name)
        if member.file_size > max_bytes or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} has {member.file_size} bytes and compression {member.compress_type}")
        with self._zip.open(member) as file:
            return file.read(member.file_size)  # no more than it declares; zipfile checks the CRC at the end


def _decoded_size(frame: bytes) -> int:
    """Return the decoded size that a zstd frame declares; -1 if there is none, or no checksum (RFC 8878, 3.1.1.1)."""
    magic, descriptor = struct.unpack_from("<IB", frame)
    single, checksum, dictionary = descriptor >> 5 & 1, descriptor >> 2 & 1, descriptor & 3
    width = {0: single, 1: 2, 2: 4, 3: 8}[descriptor >> 6]
    if magic != 0xFD2FB528 or not checksum or dictionary or not width:
        return -1
    offset = 5 if single else 6
    return int.from_bytes(frame[offset : offset + width], "little") + (256 if width == 2 else 0)
