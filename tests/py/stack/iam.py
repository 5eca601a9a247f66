"""Rights: what each part must be allowed, what nobody may, and what parliament says."""

import json
import re

import parliament

from .tree import TABLE_ARN, arn

# Actions without a resource type of their own; "*" is the only resource that they take.
WITHOUT_RESOURCE = {
    "dynamodb:ListStreams",
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
}
SERVICE_OF = {
    "StreamRole": "lambda.amazonaws.com",
    "ExportRole": "lambda.amazonaws.com",
    "CompactRole": "lambda.amazonaws.com",
    "WorkflowRole": "states.amazonaws.com",
    "SchedulerRole": "scheduler.amazonaws.com",
}


def listed(node):
    return node if isinstance(node, list) else [node]


def statements(stack):
    """(resource, statement) of each right that is given to somebody of the account."""
    for name, properties in stack.of_type("AWS::IAM::Role"):
        for policy in properties.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement
    for name, properties in stack.of_type("AWS::IAM::ManagedPolicy"):
        for statement in properties["PolicyDocument"]["Statement"]:
            yield name, statement


def matches(pattern, text):
    parts = [re.escape(part) for part in pattern.split("*")]
    return re.fullmatch(".*".join(parts), text) is not None


def allowed(stack, role, action, resource, context=None):
    for name, statement in statements(stack):
        if name != role or statement["Effect"] != "Allow":
            continue
        if not any(matches(one, action) for one in listed(statement["Action"])):
            continue
        if not any(matches(one, resource) for one in listed(statement["Resource"])):
            continue
        if all(condition(one, context or {}) for one in statement.get("Condition", {}).items()):
            return True
    return False


def condition(clause, context):
    operator, wanted = clause
    assert operator == "StringLike", operator
    return all(
        any(matches(pattern, context.get(key, "")) for pattern in listed(patterns))
        for key, patterns in wanted.items()
    )


def needed(stack):
    """(role, action, resource, context): without it something does not work."""
    lake = stack.arn("LakeBucket")
    work = stack.arn("WorkBucket")
    key = stack.outputs["KmsKeyArn"]
    stream = stack.parameters["StreamArn"]
    for action in ["DescribeStream", "GetRecords", "GetShardIterator"]:
        yield "StreamRole", f"dynamodb:{action}", stream, {}
    yield "StreamRole", "dynamodb:ListStreams", "*", {}
    for action in ["PutObject", "AbortMultipartUpload"]:
        yield "StreamRole", f"s3:{action}", f"{lake}/changes/t/dt=2026-05-01/x.parquet", {}
        yield "StreamRole", f"s3:{action}", f"{lake}/quarantine/dt=2026-05-01/x.jsonl", {}
    # "Capturing discarded batches": an S3 destination needs both.
    yield "StreamRole", "s3:PutObject", f"{work}/aws/lambda/u/shard/2026/05/01/x", {}
    yield "StreamRole", "s3:ListBucket", work, {}
    for role, group in [
        ("StreamRole", "StreamLogGroup"),
        ("ExportRole", "ExportLogGroup"),
        ("CompactRole", "CompactLogGroup"),
    ]:
        for action in ["CreateLogStream", "PutLogEvents"]:
            name = stack.ref(group)
            yield role, f"logs:{action}", arn("logs", f"log-group:{name}:log-stream:x"), {}
    for role in ["StreamRole", "ExportRole", "CompactRole", "WorkflowRole", "ReaderPolicy"]:
        for action in ["GenerateDataKey", "Decrypt"]:
            yield role, f"kms:{action}", key, {}
    for action in ["ExportTableToPointInTime", "DescribeContinuousBackups"]:
        yield "WorkflowRole", f"dynamodb:{action}", TABLE_ARN, {}
    yield "WorkflowRole", "dynamodb:DescribeExport", f"{TABLE_ARN}/export/01-ab", {}
    for action in ["PutObject", "AbortMultipartUpload"]:
        yield "WorkflowRole", f"s3:{action}", f"{work}/exports/AWSDynamoDB/x", {}
    yield "WorkflowRole", "s3:GetObject", f"{work}/plans/x.jsonl", {}
    for action in ["PutObject", "GetObject", "ListMultipartUploadParts", "AbortMultipartUpload"]:
        yield "WorkflowRole", f"s3:{action}", f"{work}/map-results/x", {}
    yield "WorkflowRole", "lambda:InvokeFunction", stack.arn("ExportFunction"), {}
    machine = stack.arn("ExportWorkflow")
    yield "WorkflowRole", "states:StartExecution", machine, {}
    child = machine.replace("stateMachine", "execution") + "/map:1"
    for action in ["DescribeExecution", "StopExecution", "RedriveExecution"]:
        yield "WorkflowRole", f"states:{action}", child, {}
    for action in sorted(WITHOUT_RESOURCE - {"dynamodb:ListStreams"}):
        yield "WorkflowRole", action, "*", {}
    yield "ExportRole", "s3:GetObject", f"{work}/exports/AWSDynamoDB/x", {}
    yield "ExportRole", "s3:PutObject", f"{work}/plans/x.jsonl", {}
    for place in ["snapshot/t/x", "deltas/t/x", "quarantine/dt=1/x", "state/lock.json"]:
        for action in ["PutObject", "AbortMultipartUpload", "DeleteObject"]:
            yield "ExportRole", f"s3:{action}", f"{lake}/{place}", {}
    for place in ["changes/t/x", "snapshot/t/x", "deltas/t/x", "quarantine/x", "state/lock.json"]:
        yield "ExportRole", "s3:GetObject", f"{lake}/{place}", {}
    for bucket in [lake, work]:
        yield "ExportRole", "s3:ListBucket", bucket, {}
    database = stack.outputs["DatabaseName"]
    catalog = ["catalog", f"database/{database}", f"table/{database}/orders"]
    for action in ["GetTable", "GetTables", "CreateTable", "UpdateTable", "DeleteTable"]:
        for one in catalog:
            yield "ExportRole", f"glue:{action}", arn("glue", one), {}
    for action in ["GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"]:
        for place in ["changes/t/x", "state/compactions/t/x"]:
            yield "CompactRole", f"s3:{action}", f"{lake}/{place}", {}
    yield "CompactRole", "s3:ListBucket", lake, {}
    yield "SchedulerRole", "states:StartExecution", machine, {}
    yield "SchedulerRole", "lambda:InvokeFunction", stack.arn("CompactFunction"), {}
    group = arn("athena", f"workgroup/{stack.outputs['WorkGroupName']}")
    for action in ["StartQueryExecution", "GetQueryExecution", "GetQueryResults"]:
        yield "ReaderPolicy", f"athena:{action}", group, {}
    for action in ["GetDatabase", "GetTable", "GetTables"]:
        for one in catalog:
            yield "ReaderPolicy", f"glue:{action}", arn("glue", one), {}
    for place in ["changes/t/x", "snapshot/t/x"]:
        yield "ReaderPolicy", "s3:GetObject", f"{lake}/{place}", {}
        yield "ReaderPolicy", "s3:ListBucket", lake, {"s3:prefix": place}
    for action in ["GetObject", "PutObject"]:
        yield "ReaderPolicy", f"s3:{action}", f"{work}/athena-results/x", {}
    table_key = stack.parameters["TableKmsKeyArn"]
    if table_key:
        yield "StreamRole", "kms:Decrypt", table_key, {}
        yield "WorkflowRole", "kms:Decrypt", table_key, {}


def refused(stack):
    """(role, action, resource): more than is needed."""
    lake, work = stack.arn("LakeBucket"), stack.arn("WorkBucket")
    roles = [*SERVICE_OF, "ReaderPolicy"]
    for role in roles:
        # The lake is made from stream and exports; the table itself is nobody's business.
        for action in ["GetItem", "Query", "Scan", "PutItem", "DeleteItem", "UpdateTable"]:
            yield role, f"dynamodb:{action}", TABLE_ARN
        yield role, "s3:DeleteBucket", lake
        yield role, "s3:GetObject", "arn:aws:s3:::another/changes/x"
        yield role, "kms:Decrypt", arn("kms", "key/99999999-0000-0000-0000-000000000000")
        yield role, "iam:PassRole", arn("iam", "role/x", region="")
    for role in ["StreamRole", "ReaderPolicy", "WorkflowRole", "SchedulerRole"]:
        yield role, "s3:DeleteObject", f"{lake}/changes/t/x"
        yield role, "s3:GetObject", f"{lake}/quarantine/dt=1/x"
        yield role, "s3:PutObject", f"{lake}/state/lock.json"
    yield "StreamRole", "s3:GetObject", f"{lake}/changes/t/x"
    yield "StreamRole", "s3:PutObject", f"{lake}/snapshot/t/x"
    yield "ExportRole", "s3:DeleteObject", f"{lake}/changes/t/x"
    yield "ExportRole", "s3:PutObject", f"{lake}/changes/t/x"
    yield "CompactRole", "s3:DeleteObject", f"{lake}/snapshot/t/x"
    yield "CompactRole", "s3:GetObject", f"{work}/aws/lambda/x"
    yield "ReaderPolicy", "s3:PutObject", f"{lake}/changes/t/x"
    yield "ReaderPolicy", "s3:GetObject", f"{work}/aws/lambda/x"
    yield "ReaderPolicy", "s3:GetObject", f"{work}/exports/x"


def check(stack):
    for name, statement in statements(stack):
        sid = statement.get("Sid", "?")
        for action in listed(statement["Action"]):
            if "*" in action:
                yield f"{name}.{sid}: the action {action} has a wildcard"
            elif "*" in listed(statement["Resource"]) and action not in WITHOUT_RESOURCE:
                yield f"{name}.{sid}: {action} is allowed on everything"
        if "NotAction" in statement or "NotResource" in statement:
            yield f"{name}.{sid}: says what is not allowed instead of what is"
    for role, action, resource, context in needed(stack):
        if not allowed(stack, role, action, resource, context):
            yield f"{role}: {action} on {resource} is needed and not allowed"
    for role, action, resource in refused(stack):
        if allowed(stack, role, action, resource):
            yield f"{role}: {action} on {resource} is allowed and not needed"
    for name, properties in stack.of_type("AWS::IAM::Role"):
        trust = properties["AssumeRolePolicyDocument"]["Statement"]
        services = [one.get("Principal", {}).get("Service") for one in trust]
        if services != [SERVICE_OF.get(name)]:
            yield f"{name}: {services} may take the role, expected {SERVICE_OF.get(name)}"
        if len(properties.get("ManagedPolicyArns", [])) > 0:
            yield f"{name}: a managed policy gives more than is written here"


def parliament_findings(stack):
    """What parliament says of each policy, but for what is explained here."""
    for name, body in stack.resources.items():
        properties = body.get("Properties", {})
        documents = [one["PolicyDocument"] for one in properties.get("Policies", [])]
        for member in ["PolicyDocument"]:
            if member in properties:
                documents.append(properties[member])
        for document in documents:
            # It takes the colons of a stream's time for those of the ARN.
            text = json.dumps(document).replace("T00:00:00.000", "T000000")
            policy = parliament.analyze_policy_string(text)
            for finding in policy.findings:
                said = f"{name}: parliament: {finding.issue} {finding.detail or finding.title}"
                if not explained(body["Type"], finding):
                    yield said


def explained(kind, finding):
    # A denial of everything without TLS is about buckets' and objects' actions at once, so some of its
    # actions fit neither of its two resources.
    if kind == "AWS::S3::BucketPolicy" and finding.issue == "RESOURCE_MISMATCH":
        return True
    # Executions of an express workflow have another form; ours is none, and neither are its children.
    mismatch = finding.detail if finding.issue == "RESOURCE_MISMATCH" else []
    return bool(mismatch) and all(
        one["action"] == "states:DescribeExecution" and ":express:" in one["required_format"]
        for one in mismatch
    )
