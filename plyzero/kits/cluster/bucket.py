"""A run in an S3-compatible bucket: paths such as s3://bucket/runs/1 that are read, created and listed like files."""

from __future__ import annotations

import errno
import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from plyzero.errors import UserError, install_command, shown
from plyzero.volumes import RemotePath

if TYPE_CHECKING:
    from obstore.store import ObjectStore

WRITER: Final = "plyzero-writer"
"""Metadata of an object: a random number of the call that has created it."""

TIMEOUT: Final = timedelta(seconds=60)
"""Longest time of a request."""


class BucketPath(RemotePath):
    """The name of an object, or the prefix of several, such as s3://bucket/runs/1.

    The methods below send requests to the store. All other uses as a file of this machine raise TypeError.
    memory://bucket exists only in this process; tests use it.
    """

    def create(self, content: bytes) -> None:
        writer = uuid.uuid4().hex
        try:
            with self._errors():
                self._store.put(self.key, content, mode="create", attributes={WRITER: writer}, use_multipart=False)
        except FileExistsError:
            # The client repeats a request if its answer is lost, and then finds its own object.
            with self._errors():
                found = self._store.get(self.key, options={"head": True}).attributes
            if found.get(WRITER) != writer:
                raise

    def put(self, content: bytes) -> None:
        with self._errors():
            self._store.put(self.key, content, use_multipart=False)

    def read(self, *, max_bytes: int) -> bytes | None:
        with self._errors():
            found = self._store.get(self.key)
            return bytes(found.bytes()) if found.meta["size"] <= max_bytes else None

    def read_part(self, offset: int, *, max_bytes: int) -> bytes:
        size = self.stat().st_size
        if offset >= size:
            return b""
        with self._errors():
            part = self._store.get_range(self.key, start=offset, end=min(size, offset + max_bytes))
        return bytes(part)

    def sizes(self) -> dict[str, int]:
        with self._errors():
            found = self._store.list_with_delimiter(prefix=self.key or None)["objects"]
        return {each["path"].rpartition("/")[2]: each["size"] for each in found}

    def remove(self) -> None:
        with self._errors(missing_ok=True):
            self._store.delete(self.key)

    @property
    def key(self) -> str:
        """The name within the bucket."""
        return "/".join(self.parts[2:])

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        with self._errors():
            found = self._store.head(self.key)
        modified = found["last_modified"].timestamp()
        return os.stat_result((0o100644, 0, 0, 1, 0, 0, found["size"], modified, modified, modified))

    def lstat(self) -> os.stat_result:
        return self.stat()

    def is_file(self, *_: object, **__: object) -> bool:
        with suppress(FileNotFoundError):
            self.stat()
            return True
        return False

    def is_dir(self, *_: object, **__: object) -> bool:
        with self._errors():
            chunks = self._store.list(prefix=self.key or None, chunk_size=1)
            return any(len(chunk) > 0 for chunk in chunks)

    def exists(self, *_: object, **__: object) -> bool:
        return self.is_file() or self.is_dir()

    def is_symlink(self) -> bool:
        return False

    def iterdir(self) -> Iterator[BucketPath]:  # type: ignore[override]  # BucketPath is Self
        return (self / name for name in self.sizes())

    def glob(self, pattern: str, **_: object) -> Iterator[BucketPath]:  # type: ignore[override]
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def mkdir(self, *_: object, **__: object) -> None:
        pass

    def absolute(self) -> BucketPath:
        return self

    def __str__(self) -> str:
        scheme = self.parts[0]
        names = "/".join(self.parts[1:])
        return f"{scheme}//{names}"

    def __fspath__(self) -> str:
        raise TypeError(f"{self} is not a file of this machine")

    @property
    def _store(self) -> ObjectStore:
        return _open_store(self.parts[0], self.parts[1])

    @contextmanager
    def _errors(self, *, missing_ok: bool = False) -> Iterator[None]:
        """Raise the errors of the store as OSErrors."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            raised = self._explained(error)
            if not (missing_ok and isinstance(raised, FileNotFoundError)):
                raise raised from error

    def _explained(self, error: Exception) -> OSError:
        from obstore.exceptions import AlreadyExistsError, PermissionDeniedError, UnauthenticatedError

        text = str(error)
        if "NoSuchBucket" in text:
            return OSError(errno.EINVAL, f"there is no bucket {self.parts[1]}; create it first", str(self))
        if isinstance(error, FileNotFoundError):
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        if isinstance(error, AlreadyExistsError):
            return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self))
        if "169.254." in text:  # the address at which a machine in a cloud finds its credentials
            reason = "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            return OSError(errno.EACCES, reason, str(self))
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            reason = "the store refuses access; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
            return OSError(errno.EACCES, reason, str(self))
        found = re.search(
            r"status code: (\d+ [\w ]+)|HTTP error: ([\w ]+)|Server returned error response: ([\w ]+)", text
        )
        detail = next(filter(None, found.groups()), "") if found else text.partition("\n")[0]
        endpoint = os.environ.get("AWS_ENDPOINT_URL") or "the store"
        return OSError(errno.EIO, f"no proper answer from {endpoint}: {detail.strip()}", str(self))


def open_bucket(text: str) -> BucketPath:
    """Return the name s3://BUCKET/PREFIX.

    Raises UserError if there is no name of a bucket, if the package for buckets is not installed, or if the endpoint in
    the environment is not a URL.
    """
    name = text.partition("//")[2]
    if name.startswith("/") or not name:
        raise UserError(f"expected s3://BUCKET/PREFIX, got {shown(text)}")
    if find_spec("obstore") is None:
        raise UserError(f"a run in a bucket needs a further package: {install_command('s3')}")
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", endpoint):
        raise UserError(f"expected AWS_ENDPOINT_URL=http://HOST:PORT or https://HOST, got {shown(endpoint)}")
    return BucketPath(text)


_stores: dict[tuple[str, str], ObjectStore] = {}
_lock = threading.Lock()


def _open_store(scheme: str, bucket: str) -> ObjectStore:
    """Return this process's client of a bucket. Endpoint and credentials come from the environment."""
    with _lock:
        if (scheme, bucket) not in _stores:
            from obstore.store import MemoryStore, S3Store

            if scheme == "memory:":
                _stores[scheme, bucket] = MemoryStore()
            else:
                _stores[scheme, bucket] = S3Store(
                    bucket,
                    client_options={"allow_http": True, "timeout": TIMEOUT, "connect_timeout": timedelta(seconds=5)},
                    retry_config={"max_retries": 3, "retry_timeout": TIMEOUT},
                )
        return _stores[scheme, bucket]
