#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Validates reports against a JSON Schema, with the package jsonschema.

  validate-report.py SCHEMA REPORT…
  validate-report.py SCHEMA REPORT --broken   each of a list of small changes to the
                                              report must be found

Prints what is wrong, and where. Exit status 0 where all is as it should be.
"""

import copy
import json
import sys

import jsonschema


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def faults(validator, report):
    return [
        f"{'.'.join(map(str, error.absolute_path)) or 'report'}: {error.message[:120]}"
        for error in validator.iter_errors(report)
    ]


def objects(value, path=()):
    """Every object below `value` whose fields are fixed, with its path."""
    if isinstance(value, dict):
        if not path or path[-1] not in ("parameters", "verdicts"):
            yield path
        for name, inner in value.items():
            yield from objects(inner, path + (name,))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:2]):
            yield from objects(inner, path + (number,))


def at(report, path):
    for step in path:
        report = report[step]
    return report


OPTIONAL = {"code", "detail", "record", "measurement", "evidence", "stopped", "best_before",
            "best_after", "full", "modelled", "sandbox", "strength", "profile",
            "instructions", "counted", "counters", "peaks", "missing"}
# Counts that are zero are left out.
COUNTS = ("counted", "counts")


def broken_forms(report):
    """Pairs of a name and a report that is broken in one place."""
    for path in objects(report):
        where = ".".join(map(str, path)) or "report"
        form = copy.deepcopy(report)
        at(form, path)["a_field_more"] = 1
        yield f"a field more in {where}", form
        for field, value in at(report, path).items():
            isCount = path and path[-1] in COUNTS and isinstance(value, int) \
                and not isinstance(value, bool)
            if field not in OPTIONAL and not isCount:
                form = copy.deepcopy(report)
                del at(form, path)[field]
                yield f"{where} without {field}", form
            form = copy.deepcopy(report)
            at(form, path)[field] = {"a list": []} if isinstance(value, list) else [value]
            yield f"{where} with a {field} of another type", form
    for kernel, value in enumerate(report["kernels"]):
        for field in ("record", "detail"):
            if field in value:
                form = copy.deepcopy(report)
                del form["kernels"][kernel][field]
                yield f"kernels.{kernel} {value['outcome']} without {field}", form
    form = copy.deepcopy(report)
    form["format_version"] = 2
    yield "another version", form


def main():
    schema_path, *paths = sys.argv[1:]
    schema = read(schema_path)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    if paths[-1] == "--broken":
        forms = list(broken_forms(read(paths[0])))
        missed = [name for name, form in forms if not faults(validator, form)]
        for name in missed:
            print(f"not seen: {name}")
        print(f"{len(forms)} broken reports, {len(missed)} not seen")
        return 1 if missed or not forms else 0
    wrong = 0
    for path in paths:
        found = faults(validator, read(path))
        wrong += bool(found)
        for fault in found[:10]:
            print(f"{path}: {fault}")
    print(f"{len(paths)} reports, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
