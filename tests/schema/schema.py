# A validator of JSON documents by JSON Schema, of the part of draft 2020-12 that docs/schemas/ uses. What it does not
# know it refuses, so that nothing in a schema goes unchecked; `format` alone is read by people only.
#
# It differs from the draft in one thing: an integer is written without a fraction. 1.0 is a number and no integer, as
# a program that reads bytes by another language's parser would see it too.
import collections
import json
import re

TYPES = {
    'null': lambda value: value is None,
    'boolean': lambda value: isinstance(value, bool),
    'integer': lambda value: isinstance(value, int) and not isinstance(value, bool),
    'number': lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    'string': lambda value: isinstance(value, str),
    'array': lambda value: isinstance(value, list),
    'object': lambda value: isinstance(value, dict),
}
REMARKS = ('$schema', '$id', '$comment', 'title', 'description', 'format')


class BadSchema(Exception):
    """The schema is at fault, not the document."""


# ---- reading ----

def _object(pairs):
    keys = [key for key, _ in pairs]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ValueError(f'a key stands twice in an object: {", ".join(twice)}')
    return dict(pairs)


def _constant(word):
    raise ValueError(f'{word} is no JSON')


def documents(text):
    """The JSON documents in a text, one or more, with nothing but blanks between them. ValueError: it is not that."""
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
    found, at = [], 0
    text = text.strip(' \t\r\n')
    while at < len(text) or not found:
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        while at < len(text) and text[at] in ' \t\r\n':
            at += 1
    return found


# ---- the schema itself ----

def _is_schema_list(value):
    return isinstance(value, list) and value and all(isinstance(item, (dict, bool)) for item in value)


def _is_words(value):
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_type(value):
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_count(value):
    return TYPES['integer'](value) and value >= 0


def _is_pattern(value):
    try:
        re.compile(value)
    except (re.error, TypeError):
        return False
    return True


KEYWORDS = {
    '$defs': lambda value: isinstance(value, dict),
    '$ref': lambda value: isinstance(value, str) and value.startswith('#'),
    'type': _is_type,
    'required': _is_words,
    'properties': lambda value: isinstance(value, dict),
    'additionalProperties': lambda value: isinstance(value, (dict, bool)),
    'items': lambda value: isinstance(value, (dict, bool)),
    'minItems': _is_count,
    'maxItems': _is_count,
    'enum': lambda value: isinstance(value, list) and value,
    'const': lambda value: True,
    'pattern': _is_pattern,
    'minimum': TYPES['number'],
    'maximum': TYPES['number'],
    'minLength': _is_count,
    'maxLength': _is_count,
    'anyOf': _is_schema_list,
}


def _below(schema, where):
    """The schemas within a schema, each with where it stands."""
    for keyword in '$defs', 'properties':
        for name, inner in schema.get(keyword, {}).items():
            yield inner, f'{where}/{keyword}/{name}'
    for keyword in 'items', 'additionalProperties':
        if keyword in schema:
            yield schema[keyword], f'{where}/{keyword}'
    for number, inner in enumerate(schema.get('anyOf', [])):
        yield inner, f'{where}/anyOf/{number}'


def _resolve(root, reference):
    found = root
    for part in reference.split('/')[1:]:
        part = part.replace('~1', '/').replace('~0', '~')
        if not isinstance(found, dict) or part not in found:
            raise BadSchema(f'{reference} leads nowhere')
        found = found[part]
    return found


def _check(root, schema, where):
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise BadSchema(f'{where} is no schema')
    for keyword, value in schema.items():
        if keyword not in KEYWORDS and keyword not in REMARKS:
            raise BadSchema(f'{where}: unknown keyword {keyword}')
        if keyword in KEYWORDS and not KEYWORDS[keyword](value):
            raise BadSchema(f'{where}: {keyword} cannot be {json.dumps(value)}')
    if '$ref' in schema:
        _resolve(root, schema['$ref'])
    missing = sorted(set(schema.get('required', [])) - set(schema.get('properties', {})))
    if missing:
        raise BadSchema(f'{where}: required, but not described: {", ".join(missing)}')
    for inner, place in _below(schema, where):
        _check(root, inner, place)


def check(schema):
    """BadSchema if the schema says something that this validator does not know, or nonsense."""
    _check(schema, schema, '#')


# ---- the document ----

_Rules = collections.namedtuple('_Rules', 'root is_closed')


def _is_same(left, right):
    """As JSON has it: 1 and true differ, which Python says are equal."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + '...'


def _of_numbers(schema, value, where):
    if 'minimum' in schema and value < schema['minimum']:
        yield f'{where}: {value} is below {schema["minimum"]}'
    if 'maximum' in schema and value > schema['maximum']:
        yield f'{where}: {value} is above {schema["maximum"]}'


def _of_strings(schema, value, where):
    if len(value) < schema.get('minLength', 0) or len(value) > schema.get('maxLength', len(value)):
        yield f'{where}: {_short(value)} has {len(value)} characters'
    # Python's $ is also before a last newline, that of the draft is not.
    if 'pattern' in schema and not re.search(re.sub(r'(?<!\\)\$$', r'\\Z', schema['pattern']), value):
        yield f'{where}: {_short(value)} does not match {schema["pattern"]}'


def _of_arrays(rules, schema, value, where):
    if len(value) < schema.get('minItems', 0) or len(value) > schema.get('maxItems', len(value)):
        yield f'{where}: has {len(value)} items'
    for number, item in enumerate(value):
        yield from _complaints(rules, schema.get('items', True), item, f'{where}[{number}]')


def _of_objects(rules, schema, value, where):
    described = schema.get('properties', {})
    others = schema.get('additionalProperties', not (rules.is_closed and described))
    for name in schema.get('required', []):
        if name not in value:
            yield f'{where}: {name} is missing'
    for name, item in value.items():
        inner = described.get(name, others)
        if inner is False and name not in described:
            yield f'{where}: {name} is not described'
        else:
            yield from _complaints(rules, inner, item, f'{where}.{name}')


def _of_all(rules, schema, value, where):
    if '$ref' in schema:
        yield from _complaints(rules, _resolve(rules.root, schema['$ref']), value, where)
    if 'anyOf' in schema:
        ways = [list(_complaints(rules, inner, value, where)) for inner in schema['anyOf']]
        if all(ways):
            yield f'{where}: {_short(value)} is none of {len(ways)} things: ' + '; '.join(way[0] for way in ways)
    if 'enum' in schema and not any(_is_same(value, other) for other in schema['enum']):
        yield f'{where}: {_short(value)} is none of {_short(schema["enum"])}'
    if 'const' in schema and not _is_same(value, schema['const']):
        yield f'{where}: {_short(value)} is not {_short(schema["const"])}'


def _complaints(rules, schema, value, where):
    if isinstance(schema, bool):
        if not schema:
            yield f'{where}: nothing may stand here'
        return
    names = schema.get('type', list(TYPES))
    names = names if isinstance(names, list) else [names]
    if not any(TYPES[name](value) for name in names):
        yield f'{where}: {_short(value)} is not of type {" or ".join(names)}'
        return
    yield from _of_all(rules, schema, value, where)
    if TYPES['number'](value):
        yield from _of_numbers(schema, value, where)
    elif isinstance(value, str):
        yield from _of_strings(schema, value, where)
    elif isinstance(value, list):
        yield from _of_arrays(rules, schema, value, where)
    elif isinstance(value, dict):
        yield from _of_objects(rules, schema, value, where)


def complaints(schema, value, is_closed=False):
    """What is wrong with a document, a line each; none if it is as the schema says. For a schema that check() passed.
    Closed: where keys are described there may be no others, unless the schema itself says more about those."""
    return list(_complaints(_Rules(schema, is_closed), schema, value, '$'))
