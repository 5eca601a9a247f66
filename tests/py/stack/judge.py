"""All judges, by name."""

import json

from cfnlint.api import lint as cfn_lint
from cfnlint.config import ManualArgs

from . import checks, iam, tables, watch, workflow
from .tree import VARIANTS, Stack

def lint(template):
    found = cfn_lint(json.dumps(template), config=ManualArgs(regions=["eu-west-1"]))
    return [
        f"cfn-lint: {one.rule.id} {'/'.join(str(part) for part in one.path or [])}: {one.message}"
        for one in found
    ]


JUDGES = {
    "checks": lambda stack, facts: list(checks.check(stack, facts)),
    "workflow": lambda stack, facts: list(workflow.check(stack)),
    "tables": lambda stack, facts: list(tables.check(stack)),
    "watch": lambda stack, facts: list(watch.check(stack, facts)),
    "rights": lambda stack, facts: list(iam.check(stack)),
    "parliament": lambda stack, facts: list(iam.parliament_findings(stack)),
}


def ours(template, facts, names=tuple(JUDGES)):
    """What each judge but cfn-lint says, over all ways to deploy."""
    said = {}
    for variant, parameters in VARIANTS.items():
        stack = Stack(template, parameters)
        for name in names:
            for one in JUDGES[name](stack, facts):
                said.setdefault(name, []).append(f"{variant}: {one}")
    return said


def everything(template, facts):
    said = lint(template)
    for judge, findings in ours(template, facts).items():
        said += [f"{judge}: {one}" for one in findings]
    return said
