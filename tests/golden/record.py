"""Record results anew: python tests/golden/record.py [NAME …]; without a name, what is missing."""

import json
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import conftest  # noqa: E402, F401 - the environment that the tests have
from cases import CASES  # noqa: E402


def recorded(file):
    path = HERE / f"{file}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def main(names):
    known = {f"{f}/{n}" for f in {c.split("/")[0] for c in CASES} for n in recorded(f)}
    wanted = [c for c in CASES if c.split("/")[1] in names or c in names]
    if unknown := set(names) - {part for c in wanted for part in (c, c.split("/")[1])}:
        sys.exit(f"not known: {', '.join(sorted(unknown))}; known are: {', '.join(CASES)}")
    for full in wanted or [c for c in CASES if c not in known]:
        file, name = full.split("/")
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output = json.loads(json.dumps(CASES[full](Path(folder))))
        outputs = {
            n: v for n, v in {**recorded(file), name: output}.items() if f"{file}/{n}" in CASES
        }
        text = json.dumps(dict(sorted(outputs.items())), indent=1, ensure_ascii=False)
        text = re.sub(r"\[[^][{}]*\]", lambda flat: " ".join(flat[0].split()), text)
        (HERE / f"{file}.json").write_text(text + "\n", "utf-8")
        print(f"{full}  {time.process_time() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
