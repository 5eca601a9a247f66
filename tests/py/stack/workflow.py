"""Amazon States Language: the graph, and what the states call."""

import re

FLOW = ["Next", "Default"]
INPUT_TYPES = {"CSV", "JSON", "JSONL", "PARQUET", "MANIFEST"}
RESOURCES = {
    "arn:aws:states:::lambda:invoke",
    "arn:aws:states:::aws-sdk:dynamodb:exportTableToPointInTime",
    "arn:aws:states:::aws-sdk:dynamodb:describeExport",
    "arn:aws:states:::aws-sdk:dynamodb:describeContinuousBackups",
}
# Members of SDK calls are parameters; ARNs are of services, not of this account's.
KINDS = {"Task", "Pass", "Choice", "Wait", "Succeed", "Fail", "Parallel", "Map"}


def check(stack):
    for name, properties in stack.of_type("AWS::StepFunctions::StateMachine"):
        text = properties.get("DefinitionString", "")
        used = set(re.findall(r"\$\{([^}]*)\}", text))
        given = set(properties.get("DefinitionSubstitutions", {}))
        for one in sorted(used - given):
            yield f"{name}: ${{{one}}} is not substituted"
        for one in sorted(given - used):
            yield f"{name}: the substitution {one} is not used"
        try:
            definition = stack.definition(name)
        except ValueError as error:
            yield f"{name}: the definition is no JSON: {error}"
            continue
        for said in graph(definition, name, stack):
            yield said


def graph(machine, where, stack):
    states = machine.get("States", {})
    if machine.get("StartAt") not in states:
        yield f"{where}: StartAt names no state"
        return
    reached, todo = set(), [machine["StartAt"]]
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        for target in targets(states[name]):
            if target not in states:
                yield f"{where}.{name}: goes to {target}, which is no state"
            else:
                todo.append(target)
    for name in sorted(set(states) - reached):
        yield f"{where}.{name}: is never reached"
    if not any(ends(state) for state in states.values()):
        yield f"{where}: no state ends it"
    for name, state in states.items():
        for said in one(state, f"{where}.{name}", stack):
            yield said


def ends(state):
    return state.get("End") is True or state["Type"] in ("Succeed", "Fail")


def targets(state):
    found = [state[member] for member in FLOW if member in state]
    found += [choice["Next"] for choice in state.get("Choices", [])]
    found += [catch["Next"] for catch in state.get("Catch", [])]
    return found


def one(state, where, stack):
    kind = state.get("Type")
    if kind not in KINDS:
        yield f"{where}: unknown type {kind}"
        return
    if kind in ("Task", "Pass", "Wait", "Parallel", "Map") and ("Next" in state) == ("End" in state):
        yield f"{where}: needs either Next or End"
    if kind == "Task":
        if state["Resource"] not in RESOURCES:
            yield f"{where}: calls {state['Resource']}, which the role does not allow for"
        if state["Resource"].endswith("lambda:invoke"):
            function = state["Parameters"]["FunctionName"]
            functions = [stack.arn(name) for name, _ in stack.of_type("AWS::Lambda::Function")]
            if function not in functions:
                yield f"{where}: calls {function}, which is no function of the stack"
        if "Retry" not in state:
            yield f"{where}: is not tried again when a service is busy"
        for retry in state.get("Retry", []):
            if not retry.get("ErrorEquals"):
                yield f"{where}: a retry names no error"
    if kind == "Parallel":
        for number, branch in enumerate(state["Branches"]):
            yield from graph(branch, f"{where}[{number}]", stack)
    if kind == "Map":
        processor = state.get("ItemProcessor", {})
        yield from graph(processor, where, stack)
        distributed = processor.get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED"
        reader = state.get("ItemReader")
        if reader and not distributed:
            yield f"{where}: reads items from S3 and is not distributed"
        if reader:
            if reader["Resource"] != "arn:aws:states:::s3:getObject":
                yield f"{where}: reads items by {reader['Resource']}"
            if reader.get("ReaderConfig", {}).get("InputType") not in INPUT_TYPES:
                yield f"{where}: unknown InputType"
        # Results above 256 KiB fail a map that has nowhere to put them.
        if distributed and "ResultWriter" not in state:
            yield f"{where}: has no ResultWriter"
