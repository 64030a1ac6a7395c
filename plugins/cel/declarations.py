"""The functions that expressions may call: names, overloads and their types.

Each line of the table is ``name | overload | argument types -> result``; the overload of a
method begins with a dot, and its first argument is the target.

*Source*: github.com/google/cel-go common/stdlib/standard.go, cel/library.go, ext (0.26);
k8s.io/apiserver pkg/cel/library (0.36): the environment for stored expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plugins.cel import type_terms as types

if TYPE_CHECKING:
    from plugins.cel.type_terms import Type

STANDARD = """
_?_:_ | conditional | bool, A, A -> A
_&&_ | logical_and | bool, bool -> bool
_||_ | logical_or | bool, bool -> bool
!_ | logical_not | bool -> bool
@not_strictly_false | not_strictly_false | bool -> bool
_==_ | equals | A, A -> bool
_!=_ | not_equals | A, A -> bool
_+_ | add_bytes | bytes, bytes -> bytes
_+_ | add_double | double, double -> double
_+_ | add_duration_duration | duration, duration -> duration
_+_ | add_duration_timestamp | duration, timestamp -> timestamp
_+_ | add_timestamp_duration | timestamp, duration -> timestamp
_+_ | add_int64 | int, int -> int
_+_ | add_list | list(A), list(A) -> list(A)
_+_ | add_string | string, string -> string
_+_ | add_uint64 | uint, uint -> uint
_/_ | divide_double | double, double -> double
_/_ | divide_int64 | int, int -> int
_/_ | divide_uint64 | uint, uint -> uint
_%_ | modulo_int64 | int, int -> int
_%_ | modulo_uint64 | uint, uint -> uint
_*_ | multiply_double | double, double -> double
_*_ | multiply_int64 | int, int -> int
_*_ | multiply_uint64 | uint, uint -> uint
-_ | negate_double | double -> double
-_ | negate_int64 | int -> int
_-_ | subtract_double | double, double -> double
_-_ | subtract_duration_duration | duration, duration -> duration
_-_ | subtract_int64 | int, int -> int
_-_ | subtract_timestamp_duration | timestamp, duration -> timestamp
_-_ | subtract_timestamp_timestamp | timestamp, timestamp -> duration
_-_ | subtract_uint64 | uint, uint -> uint
_[_] | index_list | list(A), int -> A
_[_] | index_map | map(A,B), A -> B
_[_] | optional_list_index_int | optional(list(V)), int -> optional(V)
_[_] | optional_map_index_value | optional(map(K,V)), K -> optional(V)
_[?_] | list_optindex_optional_int | list(V), int -> optional(V)
_[?_] | optional_list_optindex_optional_int | optional(list(V)), int -> optional(V)
_[?_] | map_optindex_optional_value | map(K,V), K -> optional(V)
_[?_] | optional_map_optindex_optional_value | optional(map(K,V)), K -> optional(V)
@in | in_list | A, list(A) -> bool
@in | in_map | A, map(A,B) -> bool
size | size_bytes | bytes -> int
size | .bytes_size | bytes -> int
size | size_list | list(A) -> int
size | .list_size | list(A) -> int
size | size_map | map(A,B) -> int
size | .map_size | map(A,B) -> int
size | size_string | string -> int
size | .string_size | string -> int
type | type | A -> type(A)
bool | bool_to_bool | bool -> bool
bool | string_to_bool | string -> bool
bytes | bytes_to_bytes | bytes -> bytes
bytes | string_to_bytes | string -> bytes
double | double_to_double | double -> double
double | int64_to_double | int -> double
double | string_to_double | string -> double
double | uint64_to_double | uint -> double
duration | duration_to_duration | duration -> duration
duration | int64_to_duration | int -> duration
duration | string_to_duration | string -> duration
dyn | to_dyn | A -> dyn
int | int64_to_int64 | int -> int
int | double_to_int64 | double -> int
int | duration_to_int64 | duration -> int
int | string_to_int64 | string -> int
int | timestamp_to_int64 | timestamp -> int
int | uint64_to_int64 | uint -> int
string | string_to_string | string -> string
string | bool_to_string | bool -> string
string | bytes_to_string | bytes -> string
string | double_to_string | double -> string
string | duration_to_string | duration -> string
string | int64_to_string | int -> string
string | timestamp_to_string | timestamp -> string
string | uint64_to_string | uint -> string
string | ip_to_string | ip -> string
string | cidr_to_string | cidr -> string
timestamp | timestamp_to_timestamp | timestamp -> timestamp
timestamp | int64_to_timestamp | int -> timestamp
timestamp | string_to_timestamp | string -> timestamp
uint | uint64_to_uint64 | uint -> uint
uint | double_to_uint64 | double -> uint
uint | int64_to_uint64 | int -> uint
uint | string_to_uint64 | string -> uint
contains | .contains_string | string, string -> bool
endsWith | .ends_with_string | string, string -> bool
startsWith | .starts_with_string | string, string -> bool
matches | matches | string, string -> bool
matches | .matches_string | string, string -> bool
getFullYear | .timestamp_to_year | timestamp -> int
getFullYear | .timestamp_to_year_with_tz | timestamp, string -> int
getMonth | .timestamp_to_month | timestamp -> int
getMonth | .timestamp_to_month_with_tz | timestamp, string -> int
getDayOfYear | .timestamp_to_day_of_year | timestamp -> int
getDayOfYear | .timestamp_to_day_of_year_with_tz | timestamp, string -> int
getDayOfMonth | .timestamp_to_day_of_month | timestamp -> int
getDayOfMonth | .timestamp_to_day_of_month_with_tz | timestamp, string -> int
getDate | .timestamp_to_day_of_month_1_based | timestamp -> int
getDate | .timestamp_to_day_of_month_1_based_with_tz | timestamp, string -> int
getDayOfWeek | .timestamp_to_day_of_week | timestamp -> int
getDayOfWeek | .timestamp_to_day_of_week_with_tz | timestamp, string -> int
getHours | .timestamp_to_hours | timestamp -> int
getHours | .timestamp_to_hours_with_tz | timestamp, string -> int
getHours | .duration_to_hours | duration -> int
getMinutes | .timestamp_to_minutes | timestamp -> int
getMinutes | .timestamp_to_minutes_with_tz | timestamp, string -> int
getMinutes | .duration_to_minutes | duration -> int
getSeconds | .timestamp_to_seconds | timestamp -> int
getSeconds | .timestamp_to_seconds_tz | timestamp, string -> int
getSeconds | .duration_to_seconds | duration -> int
getMilliseconds | .timestamp_to_milliseconds | timestamp -> int
getMilliseconds | .timestamp_to_milliseconds_with_tz | timestamp, string -> int
getMilliseconds | .duration_to_milliseconds | duration -> int
optional.of | optional_of | V -> optional(V)
optional.ofNonZeroValue | optional_ofNonZeroValue | V -> optional(V)
optional.none | optional_none | -> optional(V)
value | .optional_value | optional(V) -> V
hasValue | .optional_hasValue | optional(V) -> bool
or | .optional_or_optional | optional(V), optional(V) -> optional(V)
orValue | .optional_orValue_value | optional(V), V -> V
last | .list_last | list(V) -> optional(V)
first | .list_first | list(V) -> optional(V)
optional.unwrap | optional_unwrap | list(optional(V)) -> list(V)
unwrapOpt | .optional_unwrapOpt | list(optional(V)) -> list(V)
cel.@mapInsert | @mapInsert_map_key_value | map(K,V), K, V -> map(K,V)
cel.@mapInsert | @mapInsert_map_map | map(K,V), map(K,V) -> map(K,V)
"""

STRINGS = """
charAt | .string_char_at_int | string, int -> string
indexOf | .list_a_index_of_int | list(A), A -> int
indexOf | .string_index_of_string | string, string -> int
indexOf | .string_index_of_string_int | string, string, int -> int
lastIndexOf | .list_a_last_index_of_int | list(A), A -> int
lastIndexOf | .string_last_index_of_string | string, string -> int
lastIndexOf | .string_last_index_of_string_int | string, string, int -> int
lowerAscii | .string_lower_ascii | string -> string
replace | .string_replace_string_string | string, string, string -> string
replace | .string_replace_string_string_int | string, string, string, int -> string
split | .string_split_string | string, string -> list(string)
split | .string_split_string_int | string, string, int -> list(string)
substring | .string_substring_int | string, int -> string
substring | .string_substring_int_int | string, int, int -> string
trim | .string_trim | string -> string
upperAscii | .string_upper_ascii | string -> string
format | .string_format | string, list(dyn) -> string
strings.quote | strings_quote | string -> string
join | .list_join | list(string) -> string
join | .list_join_string | list(string), string -> string
find | .string_find_string | string, string -> string
findAll | .string_find_all_string | string, string -> list(string)
findAll | .string_find_all_string_int | string, string, int -> list(string)
"""

LISTS = """
slice | .list_slice | list(T), int, int -> list(T)
flatten | .list_flatten | list(list(T)) -> list(T)
flatten | .list_flatten_int | list(dyn), int -> list(dyn)
lists.range | lists_range | int -> list(int)
reverse | .list_reverse | list(T) -> list(T)
distinct | .list_distinct | list(T) -> list(T)
sets.contains | list_sets_contains_list | list(T), list(T) -> bool
sets.equivalent | list_sets_equivalent_list | list(T), list(T) -> bool
sets.intersects | list_sets_intersects_list | list(T), list(T) -> bool
includes | .dra_includes_dyn_dyn | dyn, dyn -> bool
"""

KUBERNETES = """
quantity | string_to_quantity | string -> quantity
isQuantity | is_quantity_string | string -> bool
sign | quantity_sign | quantity -> int
isGreaterThan | .quantity_is_greater_than | quantity, quantity -> bool
isGreaterThan | .semver_is_greater_than | semver, semver -> bool
isLessThan | .quantity_is_less_than | quantity, quantity -> bool
isLessThan | .semver_is_less_than | semver, semver -> bool
compareTo | .quantity_compare_to | quantity, quantity -> int
compareTo | .semver_compare_to | semver, semver -> int
asApproximateFloat | .quantity_get_float | quantity -> double
asInteger | .quantity_get_int | quantity -> int
isInteger | .quantity_is_integer | quantity -> bool
add | .quantity_add | quantity, quantity -> quantity
add | .quantity_add_int | quantity, int -> quantity
sub | .quantity_sub | quantity, quantity -> quantity
sub | .quantity_sub_int | quantity, int -> quantity
semver | string_to_semver | string -> semver
semver | string_bool_to_semver | string, bool -> semver
isSemver | is_semver_string | string -> bool
isSemver | is_semver_string_bool | string, bool -> bool
major | .semver_major | semver -> int
minor | .semver_minor | semver -> int
patch | .semver_patch | semver -> int
url | string_to_url | string -> url
isURL | is_url_string | string -> bool
getScheme | .url_get_scheme | url -> string
getHost | .url_get_host | url -> string
getHostname | .url_get_hostname | url -> string
getPort | .url_get_port | url -> string
getEscapedPath | .url_get_escaped_path | url -> string
getQuery | .url_get_query | url -> map(string,list(string))
ip | string_to_ip | string -> ip
ip | .cidr_ip | cidr -> ip
family | .ip_family | ip -> int
ip.isCanonical | ip_is_canonical | string -> bool
isUnspecified | .ip_is_unspecified | ip -> bool
isLoopback | .ip_is_loopback | ip -> bool
isLinkLocalMulticast | .ip_is_link_local_multicast | ip -> bool
isLinkLocalUnicast | .ip_is_link_local_unicast | ip -> bool
isGlobalUnicast | .ip_is_global_unicast | ip -> bool
isIP | is_ip | string -> bool
cidr | string_to_cidr | string -> cidr
containsIP | .cidr_contains_ip_string | cidr, string -> bool
containsIP | .cidr_contains_ip_ip | cidr, ip -> bool
containsCIDR | .cidr_contains_cidr_string | cidr, string -> bool
containsCIDR | .cidr_contains_cidr | cidr, cidr -> bool
prefixLength | .cidr_prefix_length | cidr -> int
masked | .cidr_masked | cidr -> cidr
isCIDR | is_cidr | string -> bool
validate | .format-validate | format, string -> optional(list(string))
format.named | format-named | string -> optional(format)
"""

NAMED_FORMATS = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
_SUMMABLE = ("int", "uint", "double", "duration")
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


class Overload(NamedTuple):
    """One signature of a function; ``variables`` are the type parameters in it."""

    name: str
    method: bool
    arguments: tuple[Type, ...]
    result: Type
    variables: tuple[Type, ...]


_NAMED_TYPES = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "int": types.INT,
    "string": types.STRING,
    "uint": types.UINT,
    "dyn": types.DYN,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    "quantity": types.QUANTITY,
    "semver": types.SEMVER,
    "url": types.URL,
    "ip": types.IP,
    "cidr": types.CIDR,
    "format": types.FORMAT,
}


def _read_type(text: str) -> Type:
    text = text.strip()
    if text in _NAMED_TYPES:
        return _NAMED_TYPES[text]
    name, _, rest = text.partition("(")
    if not rest:
        return types.parameter(name)
    inner = [_read_type(each) for each in _split(rest[:-1])]
    if name == "list":
        return types.list_of(inner[0])
    if name == "map":
        return types.map_of(inner[0], inner[1])
    return types.optional_of(inner[0]) if name == "optional" else types.type_of(inner[0])


def _split(text: str) -> list[str]:
    """Return the parts between the commas outside parentheses."""
    parts: list[str] = []
    depth = start = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [each for each in [*parts, text[start:]] if each.strip()]


def _variables(type_: Type) -> set[Type]:
    if type_.kind == "param":
        return {type_}
    return {found for each in type_.parameters for found in _variables(each)}


def _read(line: str) -> tuple[str, Overload]:
    function, name, signature = (each.strip() for each in line.split(" | "))
    given, _, result = signature.rpartition("->")
    arguments = tuple(_read_type(each) for each in _split(given))
    result_type = _read_type(result)
    variables = {found for each in (*arguments, result_type) for found in _variables(each)}
    return function, Overload(
        name.removeprefix("."),
        name.startswith("."),
        arguments,
        result_type,
        tuple(sorted(variables)),
    )


def _generated() -> list[str]:
    """Return the lines of functions that have one overload for each of many types."""
    lines = []
    pairs = [(a, b) for a in ("double", "int", "uint") for b in ("double", "int", "uint")]
    plain = [(each, each) for each in ("bool", "string", "bytes", "timestamp", "duration")]
    long = {"int": "int64", "uint": "uint64"}
    for sign, word in (
        ("<", "less"),
        ("<=", "less_equals"),
        (">", "greater"),
        (">=", "greater_equals"),
    ):
        for first, second in pairs + plain:
            suffix = long.get(first, first)
            if first != second:
                suffix += f"_{long.get(second, second)}"
            lines.append(f"_{sign}_ | {word}_{suffix} | {first}, {second} -> bool")
    for each in _COMPARABLE:
        lines.append(f"isSorted | .list_{each}_is_sorted_bool | list({each}) -> bool")
        lines.append(f"max | .list_{each}_max_{each} | list({each}) -> {each}")
        lines.append(f"min | .list_{each}_min_{each} | list({each}) -> {each}")
        lines.append(f"sort | .list_{each}_sort | list({each}) -> list({each})")
        keys = f"list(T), list({each}) -> list(T)"
        lines.append(f"@sortByAssociatedKeys | .list_{each}_sortByAssociatedKeys | {keys}")
    lines.extend(f"sum | .list_{each}_sum_{each} | list({each}) -> {each}" for each in _SUMMABLE)
    lines.extend(f"format.{each} | format.{each} | -> format" for each in NAMED_FORMATS)
    return lines


def _declared() -> dict[str, tuple[Overload, ...]]:
    found: dict[str, list[Overload]] = {}
    written = "\n".join((STANDARD, STRINGS, LISTS, KUBERNETES)).splitlines()
    for line in [*written, *_generated()]:
        if line:
            function, overload = _read(line)
            found.setdefault(function, []).append(overload)
    return {function: tuple(overloads) for function, overloads in found.items()}


FUNCTIONS = _declared()
"""The overloads of each function, in the order in which they are tried."""

VARIABLE_TYPES = {
    "device": types.DEVICE,
    **{
        name: types.type_of(type_)
        for name, type_ in (
            ("bool", types.BOOL),
            ("bytes", types.BYTES),
            ("double", types.DOUBLE),
            ("google.protobuf.Duration", types.DURATION),
            ("google.protobuf.Timestamp", types.TIMESTAMP),
            ("int", types.INT),
            ("list", types.list_of(types.parameter("A"))),
            ("map", types.map_of(types.parameter("A"), types.parameter("B"))),
            ("null_type", types.NULL),
            ("string", types.STRING),
            ("type", types.TYPE),
            ("uint", types.UINT),
            ("optional_type", types.optional_of(types.parameter("V"))),
            ("net.IP", types.IP),
            ("net.CIDR", types.CIDR),
            ("kubernetes.DRADevice", types.DEVICE),
        )
    },
}
"""The names that an expression may use without declaring them."""

DEVICE_FIELDS = {
    "driver": types.STRING,
    "allowMultipleAllocations": types.BOOL,
    "attributes": types.map_of(types.STRING, types.map_of(types.STRING, types.ANY)),
    "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
}
"""The fields of ``device``.

*Source*: k8s.io/dynamic-resource-allocation cel/compile.go, ``newCompiler`` (0.36).
"""
