"""Write the expectations of golden cases from the specification: ``python -m golden.make CASE ...``."""

import json
import sys

from golden.cases import as_expected, as_text, case_names, load_case, make


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(case_names()))
    if unknown or not names:
        print(f"golden.make: give one or more of {', '.join(case_names())}", file=sys.stderr)
        return 2
    for name in names:
        case = load_case(name)
        examples, vocabulary = make(case, "python")
        case.examples_file.write_bytes(as_text(examples, vocabulary, case.settings).encode())
        expected = as_expected(examples, case.settings, "python")
        case.expected_file.write_text(json.dumps(expected, indent=1) + "\n")
        print(f"{name}: {expected['examples']} examples")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
