"""Reads {"template", "facts"} from stdin; writes what is wrong, or with `mutants` what was not noticed.

With `ministack URL LAYERS` it reads a template and writes it for MiniStack at that address.
`facts` is what the binaries say of themselves: `metrics`, `variables`, `handlers`.
"""

import json
import sys

from . import judge, ministack, mutants, tree


def main():
    if sys.argv[1:2] == ["ministack"]:
        template = tree.load(sys.stdin.read())
        json.dump(ministack.adapted(template, *sys.argv[2:]), sys.stdout)
        return
    job = json.load(sys.stdin)
    template = tree.load(job["template"])
    if sys.argv[1:] == ["mutants"]:
        answer = mutants.unnoticed(template, job["facts"])
    elif sys.argv[1:] == ["tables"]:
        stack = tree.Stack(template, tree.REQUIRED)
        answer = [one["TableInput"] for _, one in stack.of_type("AWS::Glue::Table")]
    else:
        answer = judge.everything(template, job["facts"])
        for other in job.get("others", []):
            other = tree.load(other)
            # A Serverless service has its template inside.
            answer += judge.lint(other.get("resources", other))
    json.dump(answer, sys.stdout)


main()
