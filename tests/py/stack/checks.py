"""What cfn-lint does not look at, and what this deployment promises."""

import json
import re

from .tree import ACCOUNT, REGION

RECORD_LIFE_S = 86_400


def check(stack, facts):
    yield from buckets(stack)
    yield from keys(stack)
    yield from functions(stack, facts)
    yield from mapping(stack)
    yield from schedules(stack)
    yield from workgroup(stack)
    yield from leftovers(stack)


def buckets(stack):
    policies = {one["Bucket"]: one for _, one in stack.of_type("AWS::S3::BucketPolicy")}
    for name, one in stack.of_type("AWS::S3::Bucket"):
        body = stack.resources[name]
        if [body.get("DeletionPolicy"), body.get("UpdateReplacePolicy")] != ["Retain", "Retain"]:
            yield f"{name}: would be deleted with the stack"
        rules = one.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [{}])
        default = rules[0].get("ServerSideEncryptionByDefault", {})
        if default.get("SSEAlgorithm") != "aws:kms" or not rules[0].get("BucketKeyEnabled"):
            yield f"{name}: is not encrypted with KMS and a bucket key"
        if default.get("KMSMasterKeyID") != stack.outputs["KmsKeyArn"]:
            yield f"{name}: is encrypted with another key"
        access = one.get("PublicAccessBlockConfiguration", {})
        if [access.get(member) for member in PUBLIC] != [True] * 4:
            yield f"{name}: may become public"
        ownership = one.get("OwnershipControls", {}).get("Rules", [{}])
        if ownership[0].get("ObjectOwnership") != "BucketOwnerEnforced":
            yield f"{name}: may hold objects of others"
        if one.get("VersioningConfiguration", {}).get("Status") != "Enabled":
            yield f"{name}: has no versions"
        rules = one.get("LifecycleConfiguration", {}).get("Rules", [])
        enabled = [rule for rule in rules if rule["Status"] == "Enabled"]
        if not any("AbortIncompleteMultipartUpload" in rule for rule in enabled):
            yield f"{name}: keeps broken uploads for ever"
        if not any("NoncurrentVersionExpiration" in rule for rule in enabled):
            yield f"{name}: keeps old versions for ever"
        statements = policies.get(stack.ref(name), {}).get("PolicyDocument", {}).get("Statement", [])
        wanted = [stack.arn(name), stack.arn(name) + "/*"]
        if not any(is_tls_only(statement, wanted) for statement in statements):
            yield f"{name}: can be reached without TLS"
    lake, readers = stack.arn("LakeBucket"), stack.parameters["ReaderAccounts"]
    rows = [f"{lake}/changes/*", f"{lake}/snapshot/*"]
    for _, one in stack.of_type("AWS::S3::BucketPolicy"):
        for statement in one["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Deny":
                continue
            finds = statement["Action"] == ["s3:ListBucket", "s3:GetBucketLocation"]
            reads = statement["Action"] == "s3:GetObject" and statement["Resource"] == rows
            if statement["Principal"] != {"AWS": readers} or not (finds or reads):
                yield f"{one['Bucket']}: lets others do more than read rows"
    for rule in stack.properties("LakeBucket")["LifecycleConfiguration"]["Rules"]:
        taken = "ExpirationInDays" in rule or "Transitions" in rule
        if taken and rule.get("Prefix") != "deltas/":  # rolled into a baseline by then
            yield f"LakeBucket: the rule {rule['Id']} takes rows away"


PUBLIC = ["BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"]


def is_tls_only(statement, resources):
    return (
        statement["Effect"] == "Deny"
        and statement["Principal"] == "*"
        and statement["Action"] == "s3:*"
        and statement["Resource"] == resources
        and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
    )


def keys(stack):
    for kind in ["AWS::KMS::Key", "AWS::SecretsManager::Secret"]:
        for name, one in stack.of_type(kind):
            body = stack.resources[name]
            if [body.get("DeletionPolicy"), body.get("UpdateReplacePolicy")] != ["Retain"] * 2:
                yield f"{name}: would be deleted with the stack, and the lake could not be read"
            if kind == "AWS::KMS::Key" and one.get("EnableKeyRotation") is not True:
                yield f"{name}: is not rotated"
    for name, one in stack.of_type("AWS::KMS::Key"):
        for statement in one["KeyPolicy"]["Statement"]:
            principal = statement["Principal"]
            if principal == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}:
                continue
            # Readers in other accounts may decrypt what S3 gives them, and nothing else.
            reader = statement["Action"] == "kms:Decrypt" and statement.get("Condition") == {
                "StringEquals": {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}
            }
            others = principal == {"AWS": stack.parameters["ReaderAccounts"]} and reader
            if not others and ("Service" not in principal or "Condition" not in statement):
                yield f"{name}.{statement['Sid']}: lets others use the key"
            if any("*" in action for action in statement["Action"]):
                yield f"{name}.{statement['Sid']}: an action has a wildcard"


def functions(stack, facts):
    groups = {one["LogGroupName"] for _, one in stack.of_type("AWS::Logs::LogGroup")}
    layers = [stack.ref(name) for name, _ in stack.of_type("AWS::Lambda::LayerVersion")]
    for name, one in stack.of_type("AWS::Lambda::Function"):
        if one.get("Runtime") != "provided.al2023":
            yield f"{name}: the binaries are made for provided.al2023"
        if one["Handler"] not in facts["handlers"]:
            yield f"{name}: no binary knows the handler {one['Handler']}"
        if one.get("Layers") != layers:
            yield f"{name}: has not the schemas"
        if one.get("LoggingConfig", {}).get("LogGroup") not in groups:
            yield f"{name}: logs to a group that has no end"
        variables = one["Environment"]["Variables"]
        known = facts["variables"]["stream" if one["Handler"] == "stream" else "export-job"]
        for variable in variables:
            if variable not in known:
                yield f"{name}: the binary refuses the variable {variable}"
        bucket = stack.ref("LakeBucket")
        if variables.get("DYNALAKE_LAKE") != f"s3://{bucket}":
            yield f"{name}: DYNALAKE_LAKE is not the lake"
        if variables.get("DYNALAKE_SOURCE_TABLE") != "app-single-table":
            yield f"{name}: DYNALAKE_SOURCE_TABLE is not the table"
        if variables.get("DYNALAKE_DATABASE", "") != stack.parameters["DatabaseName"]:
            yield f"{name}: DYNALAKE_DATABASE is not the database"
        if "{{resolve:secretsmanager:arn:" not in variables.get("DYNALAKE_HMAC_KEY", ""):
            yield f"{name}: the key of the digests is missing"
        if "ReservedConcurrentExecutions" in one:
            yield f"{name}: reserved concurrency fails in new accounts"
    for name, one in stack.of_type("AWS::Logs::LogGroup"):
        if not one.get("RetentionInDays"):
            yield f"{name}: keeps logs for ever"


def mapping(stack):
    for name, one in stack.of_type("AWS::Lambda::EventSourceMapping"):
        if one["EventSourceArn"] != stack.parameters["StreamArn"]:
            yield f"{name}: reads another stream"
        if one["StartingPosition"] != "TRIM_HORIZON":
            yield f"{name}: skips the changes before it was made"
        failed = one.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
        if failed != stack.arn("WorkBucket"):
            yield f"{name}: failed batches do not go to the work bucket ({failed})"
        if not 0 < int(one["MaximumRecordAgeInSeconds"]) < RECORD_LIFE_S:
            yield f"{name}: records are dropped by the stream before they are parked"
        if not 0 < int(one["MaximumRetryAttempts"]) <= 10_000:
            yield f"{name}: tries for ever"
        if one.get("BisectBatchOnFunctionError") is not True:
            yield f"{name}: one bad record holds its batch"
        if one.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name}: the function's answer is not looked at"
        if one.get("MetricsConfig", {}).get("Metrics") != ["EventCount"]:
            yield f"{name}: does not count what it drops"
        if one["FunctionName"] != stack.arn("StreamFunction"):
            yield f"{name}: feeds another function"


def schedules(stack):
    roles = {stack.arn(name) for name, _ in stack.of_type("AWS::IAM::Role")}
    targets = {stack.ref(name) for name, _ in stack.of_type("AWS::StepFunctions::StateMachine")}
    targets |= {stack.arn(name) for name, _ in stack.of_type("AWS::Lambda::Function")}
    for name, one in stack.of_type("AWS::Scheduler::Schedule"):
        if not is_schedule(one["ScheduleExpression"]):
            yield f"{name}: {one['ScheduleExpression']} is no schedule"
        if one["Target"]["Arn"] not in targets:
            yield f"{name}: calls nothing of this stack"
        if one["Target"]["RoleArn"] not in roles:
            yield f"{name}: has no role"
        if one["State"] not in ("ENABLED", "DISABLED"):
            yield f"{name}: is neither on nor off"
        try:
            json.loads(one["Target"]["Input"])
        except ValueError:
            yield f"{name}: its input is no JSON"


def is_schedule(text):
    rate = re.fullmatch(r"rate\(([1-9]\d*) (minute|hour|day)(s?)\)", text)
    if rate:
        return (rate[1] == "1") == (rate[3] == "")
    cron = re.fullmatch(r"cron\((.*)\)", text)
    fields = cron[1].split(" ") if cron else []
    if len(fields) != 6 or not all(re.fullmatch(r"[0-9A-Z,\-*/?L#W]+", one) for one in fields):
        return False
    # Of the day of the month and the day of the week one must be left open.
    return (fields[2] == "?") != (fields[4] == "?")


def workgroup(stack):
    for name, one in stack.of_type("AWS::Athena::WorkGroup"):
        settings = one["WorkGroupConfiguration"]
        engine = settings.get("EngineVersion", {}).get("SelectedEngineVersion")
        if engine != "Athena engine version 3":
            yield f"{name}: the views are written for Athena engine version 3, not {engine}"
        if settings.get("EnforceWorkGroupConfiguration") is not True:
            yield f"{name}: clients may choose other settings"
        result = settings.get("ResultConfiguration", {})
        if result.get("OutputLocation") != f"s3://{stack.ref('WorkBucket')}/athena-results/":
            yield f"{name}: results go to {result.get('OutputLocation')}"
        if result.get("EncryptionConfiguration", {}).get("KmsKey") != stack.outputs["KmsKeyArn"]:
            yield f"{name}: results are not encrypted with the key"
        if int(settings.get("BytesScannedCutoffPerQuery", 0)) < 10_000_000:
            yield f"{name}: queries have no limit"


def leftovers(stack):
    for name, body in stack.resources.items():
        for text in texts(body):
            if re.search(r"@[A-Z_]+@", text):
                yield f"{name}: a place of the base is not filled in"
            if "${" in text and body["Type"] not in ("AWS::StepFunctions::StateMachine", "AWS::Glue::Table"):
                yield f"{name}: ${{…}} is left in {text[:60]}"
    for name, value in stack.outputs.items():
        if not isinstance(value, str) or not value:
            yield f"output {name} is empty"


def texts(node):
    if isinstance(node, dict):
        for one in node.values():
            yield from texts(one)
    elif isinstance(node, list):
        for one in node:
            yield from texts(one)
    elif isinstance(node, str):
        yield node
