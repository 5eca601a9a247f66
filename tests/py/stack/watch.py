"""Alarms and dashboard: do the numbers exist that they look at?"""

import json
import re

LAMBDA = {"Errors", "Duration", "IteratorAge"}
MAPPING = {"DroppedEventCount", "OnFailureDestinationDeliveredEventCount"}
STATES = {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}
# What must ring, by the metrics that are looked at.
MUST_RING = {
    "IteratorAge": "changes wait",
    "Errors": "the stream function fails",
    "Duration": "a function is near its time-out",
    "OnFailureDestinationDeliveredEventCount": "batches are parked",
    "DroppedEventCount": "batches are dropped",
    "ConsumedWriteCapacityUnits": "nothing is written",
    "quarantined": "records are quarantined",
    "unmatched": "items match no entity",
    "mismatches": "values do not fit",
    "ExecutionsFailed": "an export fails",
    "ExecutionsTimedOut": "an export takes too long",
    "audit_missing": "an audit finds missing items",
    "audit_extra": "an audit finds too many items",
    "audit_different": "an audit finds different items",
    "compact_problems": "compaction leaves days alone",
}


def check(stack, facts):
    topics = [stack.ref(name) for name, _ in stack.of_type("AWS::SNS::Topic")]
    looked_at = set()
    for name, one in stack.of_type("AWS::CloudWatch::Alarm"):
        if one.get("AlarmActions") != topics:
            yield f"{name}: tells nobody"
        if one.get("TreatMissingData") != "notBreaching":
            yield f"{name}: rings while nothing happens"
        if not one.get("AlarmDescription"):
            yield f"{name}: does not say what it means"
        if "Metrics" in one:
            yield from expressions(name, one["Metrics"])
            metrics = [part["MetricStat"]["Metric"] for part in one["Metrics"] if "MetricStat" in part]
        else:
            metrics = [one]
        for metric in metrics:
            dimensions = {part["Name"]: part["Value"] for part in metric["Dimensions"]}
            looked_at.add(metric["MetricName"])
            for said in known(stack, facts, metric["Namespace"], metric["MetricName"], dimensions):
                yield f"{name}: {said}"
    for metric, meaning in MUST_RING.items():
        if metric not in looked_at:
            yield f"nobody is told when {meaning} ({metric})"
    for name, one in stack.of_type("AWS::CloudWatch::Dashboard"):
        yield from dashboard(stack, facts, name, one["DashboardBody"])


def expressions(name, metrics):
    ids = {part["Id"] for part in metrics}
    if sum(part.get("ReturnData", True) for part in metrics) != 1:
        yield f"{name}: not exactly one number decides"
    for part in metrics:
        for word in re.findall(r"\b[a-z][A-Za-z0-9_]*\b", part.get("Expression", "")):
            if word not in ids:
                yield f"{name}: the expression names {word}, which is no metric of it"
        if "Expression" not in part and part["Id"] not in " ".join(
            other.get("Expression", "") for other in metrics
        ):
            yield f"{name}: {part['Id']} is not used"


def known(stack, facts, namespace, metric, dimensions):
    functions = {stack.ref(name) for name, _ in stack.of_type("AWS::Lambda::Function")}
    mappings = {stack.ref(name) for name, _ in stack.of_type("AWS::Lambda::EventSourceMapping")}
    machines = {stack.ref(name) for name, _ in stack.of_type("AWS::StepFunctions::StateMachine")}
    table = stack.outputs["TableName"]
    sources = {
        "dynalake": (set(facts["metrics"]), {"database": {stack.outputs["DatabaseName"]}}),
        "AWS/DynamoDB": ({"ConsumedWriteCapacityUnits"}, {"TableName": {table}}),
        "AWS/States": (STATES, {"StateMachineArn": machines}),
        "AWS/Athena": ({"ProcessedBytes"}, {"WorkGroup": {stack.outputs["WorkGroupName"]}}),
    }
    if namespace == "AWS/Lambda":
        if metric in MAPPING:
            names, wanted = MAPPING, {"EventSourceMappingUUID": mappings}
        else:
            names, wanted = LAMBDA, {"FunctionName": functions}
    elif namespace in sources:
        names, wanted = sources[namespace]
    else:
        yield f"unknown namespace {namespace}"
        return
    if metric not in names:
        yield f"nobody emits {namespace} {metric}"
    if set(dimensions) != set(wanted) or any(
        value not in wanted[key] for key, value in dimensions.items()
    ):
        yield f"{namespace} {metric} has no dimensions {dimensions}"


def dashboard(stack, facts, name, text):
    try:
        widgets = json.loads(text)["widgets"]
    except (ValueError, KeyError) as error:
        yield f"{name}: the body is no JSON: {error}"
        return
    places = set()
    groups = {one["LogGroupName"] for _, one in stack.of_type("AWS::Logs::LogGroup")}
    alarms = {stack.arn(alarm) for alarm, _ in stack.of_type("AWS::CloudWatch::Alarm")}
    shown = set()
    for widget in widgets:
        where = f"{name}: {widget['properties'].get('title', widget['type'])}"
        for x in range(widget["x"], widget["x"] + widget["width"]):
            for y in range(widget["y"], widget["y"] + widget["height"]):
                if (x, y) in places or x >= 24:
                    yield f"{where}: lies on another or beyond the edge"
                places.add((x, y))
        properties = widget["properties"]
        shown |= set(properties.get("alarms", []))
        if widget["type"] == "log":
            group = re.match(r"SOURCE '([^']+)' \| ", properties["query"])
            if not group or group[1] not in groups:
                yield f"{where}: reads no log of this stack"
        above = []
        for row in properties.get("metrics", []):
            row = [part for part in row if not isinstance(part, dict)]
            if row[0] == "...":
                row = above[: len(above) - len(row) + 1] + row[1:]
            row = [above[at] if part == "." else part for at, part in enumerate(row)]
            above = row
            dimensions = dict(zip(row[2::2], row[3::2]))
            for said in known(stack, facts, row[0], row[1], dimensions):
                yield f"{where}: {said}"
    if shown != alarms:
        yield f"{name}: does not show exactly the alarms of the stack"
