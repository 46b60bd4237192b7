"""python validate.py FORMAT BODIES.jsonl ..: every request body is one that the format's official SDK could send."""

import json
import sys

import params


def main() -> int:
    name, *files = sys.argv[1:]
    passed = failed = 0
    for file in files:
        with open(file, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    params.check(name, json.loads(line))
                    passed += 1
                except Exception as error:
                    failed += 1
                    print(f"FAILED {file}:{number}: {error}")
    print(f"bodies of {name}: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
