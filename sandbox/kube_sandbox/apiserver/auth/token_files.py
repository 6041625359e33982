"""The file of `--token-auth-file`, with one record per token: `token,user name,user uid,"group1,group2"`.

It is read once, as kube-apiserver's `staging/src/k8s.io/apiserver/pkg/authentication/token/tokenfile` does.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from kube_base.errors import UsageError
from kube_sandbox.apiserver.attributes import User

logger = logging.getLogger(__name__)

_FIELD = re.compile(r'("(?:[^"]|"")*"|[^",\n]*?)(,|\r?\n|\r?\Z)')
"""A field, and what ends it. Go's encoding/csv accepts quotes only around a whole field."""


def load(file: Path) -> dict[str, User]:
    """The users by their tokens. Raises UsageError for a file that kube-apiserver does not accept.

    The last of several records with the same token counts. A record with an empty token is ignored."""
    tokens: dict[str, User] = {}
    try:
        records = list(_records(file.read_text()))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the token file {file}: {error}") from error
    for number, record in enumerate(records, start=1):
        if len(record) < 3:
            columns = "must have at least 3 columns (token, user name, user uid)"
            raise UsageError(f"the token file {file} {columns}, but record {number} has {len(record)}")
        token, name, uid, *groups = record
        if not token or token in tokens:
            logger.warning("a token is empty or a duplicate", extra={"file": str(file), "record": number})
        if token:
            tokens[token] = User(name, tuple(groups[0].split(",")) if groups else (), uid)
    return tokens


def _records(text: str) -> Iterator[list[str]]:
    """The records of CSV text, without empty lines. ValueError: wrong quotes."""
    record: list[str] = []
    position = 0
    while position < len(text) or record:
        found = _FIELD.match(text, position)
        if found is None:
            raise ValueError(f'a " in the field at character {position + 1} is not around the whole field')
        field, end = found.groups()
        record.append(field)
        position = found.end()
        if end != ",":
            if record != [""]:
                yield [each[1:-1].replace('""', '"') if each.startswith('"') else each for each in record]
            record = []
