"""Named formats: what is wrong with a name, a label, a URI or a date.

*Source*: k8s.io/apiserver pkg/cel/library/format.go (0.36); k8s.io/apimachinery
pkg/util/validation, pkg/api/validate/content (0.36); k8s.io/kube-openapi pkg/validation/strfmt.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import re2

from plugins.cel.declarations import NAMED_FORMATS
from plugins.cel.urls import problem
from plugins.cel.values import NONE, Opaque, Optional, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_LABEL}(\\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_KEY})?"
_UUID = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = r"(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})"
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"

_LABEL_ERROR = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character"
)
_SUBDOMAIN_ERROR = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
_LABEL_1035_ERROR = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character"
)
_KEY_ERROR = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_LABEL_VALUE_ERROR = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character"
)

Problems = list[str]


def _fits(pattern: str, text: str) -> bool:
    return re2.fullmatch(pattern, text) is not None


def _mismatch(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, most: int) -> Problems:
    long = len(text.encode()) > most
    return [f"must be no more than {most} characters"] if long else []


def _label(text: str) -> Problems:
    problems = _too_long(text, 63)
    if not _fits(_LABEL, text):
        if _fits(_SUBDOMAIN, text):
            problems.append("must not contain dots")
        else:
            problems.append(_mismatch(_LABEL_ERROR, _LABEL, "my-name", "123-abc"))
    return problems


def _subdomain(text: str) -> Problems:
    problems = _too_long(text, 253)
    if not _fits(_SUBDOMAIN, text):
        problems.append(_mismatch(_SUBDOMAIN_ERROR, _SUBDOMAIN, "example.com"))
    return problems


def _label_1035(text: str) -> Problems:
    problems = _too_long(text, 63)
    if not _fits(_LABEL_1035, text):
        problems.append(_mismatch(_LABEL_1035_ERROR, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _prefix(validate: Callable[[str], Problems]) -> Callable[[str], Problems]:
    """Return the validation of the beginning of such a name, which may end with a dash."""

    def check(text: str) -> Problems:
        if len(text.encode()) > 1 and text.endswith("-"):
            text = text.encode()[:-2].decode(errors="replace") + "a"
        return validate(text)

    return check


def _qualified_name(text: str) -> Problems:
    mismatch = _mismatch(_KEY_ERROR, _KEY, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    problems: Problems = []
    if len(parts) > 2:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {mismatch}{optional}"]
    if len(parts) == 2:
        found = _subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        problems = [f"prefix part {each}" for each in found]
    name = parts[-1]
    long = _too_long(name, 63) if name else ["must be non-empty"]
    problems += [f"name part {each}" for each in long]
    if not _fits(_KEY, name):
        problems.append(f"name part {mismatch}")
    return problems


def _label_value(text: str) -> Problems:
    problems = _too_long(text, 63)
    if not _fits(_LABEL_VALUE, text):
        examples = ("MyValue", "my_value", "12345")
        problems.append(_mismatch(_LABEL_VALUE_ERROR, _LABEL_VALUE, *examples))
    return problems


def _uri(text: str) -> Problems:
    found = problem(text)
    return [] if found is None else [found]


def _is_date(text: str) -> bool:
    if not _fits("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = (int(each) for each in text.split("-"))
    try:
        date(year or 4, month, day)  # the year 0 was a leap year, too
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text.encode()) < 4 or len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = re2.fullmatch(_TIME, parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _unless(valid: Callable[[str], bool], message: str) -> Callable[[str], Problems]:
    return lambda text: [] if valid(text) else [message]


class NamedFormat(Opaque):
    """A format: its name, its validation, and the size of its pattern for the cost."""

    __slots__ = ("name", "pattern_size", "validate")
    type_name = "kubernetes.NamedFormat"
    hashable = False

    def __init__(self, name: str, validate: Callable[[str], Problems], pattern_size: int) -> None:
        self.name = name
        self.validate = validate
        self.pattern_size = pattern_size

    def same(self, other: Opaque) -> bool:
        """Report whether both have one name."""
        return isinstance(other, NamedFormat) and self.name == other.name


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat(
        "uuid",
        _unless(lambda text: _fits(_UUID, text), "does not match the UUID format"),
        len("(?i)^$") + len(_UUID) - len("(?i)"),
    ),
    "byte": NamedFormat("byte", _unless(lambda text: _fits(_BASE64, text), "invalid base64"), 84),
    "date": NamedFormat("date", _unless(_is_date, "invalid date"), len(_TIME) + 2),
    "datetime": NamedFormat("datetime", _unless(_is_datetime, "invalid datetime"), len(_TIME) + 2),
}


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(True, found)


def _validate(named: NamedFormat, text: str) -> Optional:
    problems: list[Value] = list(named.validate(text))
    return Optional(True, problems) if problems else NONE


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


IMPLEMENTATIONS: dict[str, Value] = {
    "format-validate": _validate,
    "format-named": _named,
    **{f"format.{name}": _constant(FORMATS[name]) for name in NAMED_FORMATS},
}
