"""Seeded mistakes: each must be noticed, by the judge that is named for it."""

import copy
import json

from cfnlint.api import lint as cfn_lint
from cfnlint.config import ManualArgs

from .judge import ours

DROP = object()


def at(*path):
    return ["Resources", *path]


def properties(resource, *path):
    return at(resource, "Properties", *path)


def statement(role, sid, *path):
    """Path of a statement of a role's inline policy, found by its Sid."""
    return ("statement", role, sid, path)


# Mistakes that cfn-lint alone must find; all of them are made at once, in different places.
LINTED = [
    ("a property that is not there", properties("WorkGroup", "Nme"), "x"),
    ("a type that is not there", at("AlarmTopic", "Type"), "AWS::SNS::Tpic"),
    ("a missing required property", properties("StreamMapping", "FunctionName"), DROP),
    ("a number out of range", properties("CompactFunction", "Timeout"), 1000),
    ("a word that is not in the list", properties("StreamMapping", "StartingPosition"), "HORIZON"),
    ("a runtime that is not there", properties("ExportFunction", "Runtime"), "provided.al2024"),
    ("a reference to nothing", properties("KeyAlias", "TargetKeyId"), {"Ref": "Kye"}),
    ("an attribute that is not there", properties("StreamFunction", "Role"),
     {"Fn::GetAtt": ["StreamRole", "Arm"]}),
    ("a variable of a Sub that is not there", properties("SchemasLayer", "LayerName"),
     {"Fn::Sub": "${AWS::StakName}-schemas"}),
    ("a condition that is not there", at("HmacSecret", "Condition"), "CreateHmac"),
    ("a wrong comparison", properties("StreamLagAlarm", "ComparisonOperator"), "GreaterThen"),
    ("a text where a list belongs", properties("AuditAlarm", "AlarmActions"), "topic"),
    ("a wrong storage rule", properties("WorkBucket", "LifecycleConfiguration", "Rules", 0, "Status"),
     "On"),
    ("a wrong principal", properties("LakeBucketPolicy", "PolicyDocument", "Statement", 0, "Effect"),
     "Refuse"),
    ("a wrong retention", properties("StreamLogGroup", "RetentionInDays"), 31),
    ("a wrong deletion policy", at("Key", "DeletionPolicy"), "Keep"),
    ("a Join without a list", properties("ReaderPolicy", "Description"), {"Fn::Join": "-"}),
    ("a mode that is not in the list", properties("IncrementalSchedule",
     "FlexibleTimeWindow", "Mode"), "NEVER"),
]

# Mistakes that our own judges and parliament must find, one at a time.
OURS = [
    ("a bucket's name as the place of failed batches", "checks",
     properties("StreamMapping", "DestinationConfig", "OnFailure", "Destination"), {"Ref": "WorkBucket"}),
    ("the wrong bucket for failed batches", "checks",
     properties("StreamMapping", "DestinationConfig", "OnFailure", "Destination"),
     {"Fn::GetAtt": ["LakeBucket", "Arn"]}),
    ("changes are skipped", "checks", properties("StreamMapping", "StartingPosition"), "LATEST"),
    ("records older than the stream keeps them", "checks",
     properties("StreamMapping", "MaximumRecordAgeInSeconds"), 604800),
    ("endless tries", "checks", properties("StreamMapping", "MaximumRetryAttempts"), -1),
    ("no bisection", "checks", properties("StreamMapping", "BisectBatchOnFunctionError"), DROP),
    ("no counts of the mapping", "checks", properties("StreamMapping", "MetricsConfig"), DROP),
    ("the mapping feeds another function", "checks", properties("StreamMapping", "FunctionName"),
     {"Fn::GetAtt": ["ExportFunction", "Arn"]}),
    ("the lake goes with the stack", "checks", at("LakeBucket", "DeletionPolicy"), "Delete"),
    ("the key goes with the stack", "checks", at("Key", "UpdateReplacePolicy"), DROP),
    ("a public lake", "checks",
     properties("LakeBucket", "PublicAccessBlockConfiguration", "BlockPublicPolicy"), False),
    ("encryption with S3's key", "checks",
     properties("WorkBucket", "BucketEncryption", "ServerSideEncryptionConfiguration", 0,
                "ServerSideEncryptionByDefault"), {"SSEAlgorithm": "AES256"}),
    ("access without TLS", "checks",
     properties("LakeBucketPolicy", "PolicyDocument", "Statement", 0, "Resource"),
     [{"Fn::GetAtt": ["LakeBucket", "Arn"]}]),
    ("readers who see the quarantine", "checks",
     properties("LakeBucketPolicy", "PolicyDocument", "Statement", 1, "Fn::If", 1, "Resource"),
     {"Fn::Sub": "${LakeBucket.Arn}/*"}),
    ("readers who may use the key for anything", "checks",
     properties("Key", "KeyPolicy", "Statement", 3, "Fn::If", 1, "Condition"), DROP),
    ("rows that expire", "checks",
     properties("LakeBucket", "LifecycleConfiguration", "Rules", 1, "ExpirationInDays"), 30),
    ("an old engine", "checks",
     properties("WorkGroup", "WorkGroupConfiguration", "EngineVersion", "SelectedEngineVersion"),
     "Athena engine v3"),
    ("results without a folder", "checks",
     properties("WorkGroup", "WorkGroupConfiguration", "ResultConfiguration", "OutputLocation"),
     {"Fn::Sub": "s3://${WorkBucket}"}),
    ("queries without a limit", "checks",
     properties("WorkGroup", "WorkGroupConfiguration", "BytesScannedCutoffPerQuery"), DROP),
    ("a schedule with five fields", "checks",
     properties("IncrementalSchedule", "ScheduleExpression"), "cron(7 3 * * ?)"),
    ("a schedule with a wrong plural", "checks", properties("CompactionRuns", "ScheduleExpression"),
     "rate(1 days)"),
    ("a schedule's input that is no JSON", "checks",
     properties("IncrementalSchedule", "Target", "Input"), "{type: FULL}"),
    ("a handler that no binary knows", "checks", properties("CompactFunction", "Handler"), "compaction"),
    ("a variable that the binary refuses", "checks",
     properties("StreamFunction", "Environment", "Variables", "DYNALAKE_TABEL"), "x"),
    ("a lake that is not the bucket", "checks",
     properties("ExportFunction", "Environment", "Variables", "DYNALAKE_LAKE"), {"Ref": "LakeBucket"}),
    ("a function without schemas", "checks", properties("ExportFunction", "Layers"), DROP),
    ("a function's log without an end", "checks", properties("StreamFunction", "LoggingConfig"), DROP),
    ("a function without the key of digests", "checks",
     properties("StreamFunction", "Environment", "Variables", "DYNALAKE_HMAC_KEY"), ""),
    ("a workflow that is no JSON", "workflow",
     ("workflow", lambda text: text[:-1]), None),
    ("a state that is not there", "workflow",
     ("workflow", lambda text: text.replace('"Next":"', '"Next":"No such ', 1)), None),
    ("a start that is not there", "workflow",
     ("workflow", lambda text: text.replace('"StartAt":"', '"StartAt":"No such ', 1)), None),
    ("an input type that is not there", "workflow",
     ("workflow", lambda text: text.replace('"InputType":"JSONL"', '"InputType":"JSONLINES"')), None),
    ("a service that the role does not allow for", "workflow",
     ("workflow", lambda text: text.replace(":describeExport", ":describeExports", 1)), None),
    ("a substitution that is not given", "workflow",
     properties("ExportWorkflow", "DefinitionSubstitutions", "ExportPrefix"), DROP),
    ("a column with a type of SQL", "tables",
     properties("TableOrdersChanges", "TableInput", "StorageDescriptor", "Columns", 0, "Type"), "varchar"),
    ("a struct that is not closed", "tables",
     properties("TableOrdersChanges", "TableInput", "StorageDescriptor", "Columns", 0, "Type"),
     "array<struct<a:int>"),
    ("a slip in a projection", "tables",
     ("rename", properties("TableOrdersChanges", "TableInput", "Parameters"),
      "projection.dt.format", "projection.dt.fromat"), None),
    ("partitions that are not projected", "tables",
     properties("TableOrdersSnapshot", "TableInput", "Parameters", "projection.enabled"), "True"),
    ("an export that is not injected", "tables",
     properties("TableOrdersSnapshot", "TableInput", "Parameters", "projection.export.type"), "enum"),
    ("partitions in another place", "tables",
     properties("TableOrdersChanges", "TableInput", "Parameters", "storage.location.template"),
     {"Fn::Sub": "s3://${LakeBucket}/changes/order/dt=${!dt}/"}),
    ("a place without a slash", "tables",
     properties("TableOrdersChanges", "TableInput", "StorageDescriptor", "Location"),
     {"Fn::Sub": "s3://${LakeBucket}/changes/orders"}),
    ("a table in another database", "tables", properties("TableOrdersChanges", "DatabaseName"), "default"),
    ("two columns of one name", "tables",
     properties("TableOrdersChanges", "TableInput", "StorageDescriptor", "Columns", 1, "Name"), "_pk"),
    ("a reader of JSON for Parquet", "tables",
     properties("TableOrdersChanges", "TableInput", "StorageDescriptor", "SerdeInfo",
                "SerializationLibrary"), "org.openx.data.jsonserde.JsonSerDe"),
    ("a dashboard that is no JSON", "watch",
     ("dashboard", lambda text: text.replace('"widgets": [', '"widgets": ', 1)), None),
    ("widgets on top of each other", "watch",
     ("dashboard", lambda text: text.replace('"y": 11', '"y": 10', 1)), None),
    ("a dashboard of a metric that nobody emits", "watch",
     ("dashboard", lambda text: text.replace('"quarantined"', '"quarantine"', 1)), None),
    ("an alarm on a metric that nobody emits", "watch",
     properties("QuarantineAlarm", "MetricName"), "quarantine"),
    ("an alarm that tells nobody", "watch", properties("MismatchesAlarm", "AlarmActions"), DROP),
    ("an alarm on another function's errors", "watch",
     properties("StreamErrorsAlarm", "Dimensions", 0, "Value"), "stream"),
    ("an expression of a metric that is not there", "watch",
     properties("NothingWrittenAlarm", "Metrics", 0, "Expression"),
     "IF(FILL(written, 0) > 0 AND FILL(rows, 0) == 0, 1, 0)"),
    ("an alarm that rings in silence", "watch",
     properties("StreamLagAlarm", "TreatMissingData"), "breaching"),
    ("no alarm for what is unmatched", "watch", properties("UnmatchedAlarm", "MetricName"), "mismatches"),
    ("a wildcard in an action", "rights", statement("StreamRole", "WriteLake", "Action"), "s3:Put*"),
    ("everything as a resource", "rights", statement("ExportRole", "ReadLake", "Resource"), "*"),
    ("the whole lake instead of a prefix", "rights", statement("CompactRole", "MergeChanges", "Resource"),
     {"Fn::Sub": "${LakeBucket.Arn}/*"}),
    ("a right on the table itself", "rights", statement("WorkflowRole", "ExportTable", "Action"),
     ["dynamodb:ExportTableToPointInTime", "dynamodb:DescribeContinuousBackups", "dynamodb:GetItem"]),
    ("a missing right", "rights", statement("StreamRole", "FindParkedBatches"), DROP),
    ("a right on the wrong bucket", "rights", statement("StreamRole", "ParkBatches", "Resource"),
     {"Fn::Sub": "${LakeBucket.Arn}/aws/lambda/*"}),
    ("another service that takes a role", "rights",
     properties("StreamRole", "AssumeRolePolicyDocument", "Statement", 0, "Principal", "Service"),
     "ec2.amazonaws.com"),
    ("a role without the table's key", "rights", statement("WorkflowRole", "ReadEncryptedTable"), DROP),
    ("an action that is not there", "parliament", statement("StreamRole", "WriteLake", "Action"),
     ["s3:PutObjects"]),
    ("a bucket where objects belong", "parliament", statement("ReaderPolicy", "ReadRows", "Resource"),
     {"Fn::GetAtt": ["LakeBucket", "Arn"]}),
    ("objects where a bucket belongs", "parliament", statement("CompactRole", "ListLake", "Resource"),
     {"Fn::Sub": "${LakeBucket.Arn}/*"}),
]


def resolve(template, path):
    """The container of a path and its last step."""
    if isinstance(path, tuple):
        _, role, sid, rest = path
        body = template["Resources"][role]["Properties"]
        document = body.get("PolicyDocument") or body["Policies"][0]["PolicyDocument"]
        statements = document["Statement"]
        for number, one in enumerate(statements):
            plain = one["Fn::If"][1] if "Fn::If" in one else one
            if plain["Sid"] == sid:
                return (plain, rest[0]) if rest else (statements, number)
        raise KeyError(sid)
    node = template
    for step in path[:-1]:
        node = node[step]
    return node, path[-1]


def put(template, path, value):
    kind = path[0] if isinstance(path, tuple) else ""
    if kind == "workflow":
        body = template["Resources"]["ExportWorkflow"]["Properties"]
        before = body["DefinitionString"]
        body["DefinitionString"] = path[1](before)
        assert body["DefinitionString"] != before, "the mistake was not made"
        return
    if kind == "dashboard":
        parts = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
        before, parts[0] = parts[0], path[1](parts[0])
        assert parts[0] != before, "the mistake was not made"
        return
    if kind == "rename":
        node, last = resolve(template, path[1] + [path[2]])
        node[path[3]] = node.pop(last)
        return
    node, last = resolve(template, path)
    if value is DROP:
        del node[last]
    else:
        node[last] = value


def unnoticed(template, facts):
    """The names of all mistakes, and those that their judge did not notice."""
    missed = []
    mutant = copy.deepcopy(template)
    for _, path, value in LINTED:
        put(mutant, path, value)
    found = cfn_lint(json.dumps(mutant), config=ManualArgs(regions=["eu-west-1"]))
    paths = [[str(step) for step in one.path or []] for one in found]
    for name, path, _ in LINTED:
        # What is missing is reported where it is missing from.
        path = [str(step) for step in path]
        near = [path, path[:-1]]
        if not any(one[: len(path)] == path or one in near for one in paths):
            missed.append(f"cfn-lint: {name}")
    for name, judge, path, value in OURS:
        mutant = copy.deepcopy(template)
        put(mutant, path, value)
        if not ours(mutant, facts, [judge]).get(judge):
            missed.append(f"{judge}: {name}")
    return {"mistakes": len(LINTED) + len(OURS), "missed": missed}
