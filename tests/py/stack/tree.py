"""A template as plain data, and as CloudFormation would see it once its parameters are known."""

import json
import re

from cfnlint.decode import cfn_yaml

REGION, ACCOUNT, STACK = "eu-west-1", "123456789012", "orders-lake"
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com",
}
NO_VALUE = object()


def load(text):
    """The template, short forms written out, without cfn-lint's own classes."""
    return plain(cfn_yaml.loads(text))


def plain(node):
    if isinstance(node, dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [plain(value) for value in node]
    return str(node) if isinstance(node, str) else node


def arn(service, rest, region=REGION, account=ACCOUNT):
    return f"arn:aws:{service}:{region}:{account}:{rest}"


def given(parameter, value):
    """A parameter's value: a text, or of a list of texts each."""
    if parameter["Type"] == "CommaDelimitedList":
        return str(value).split(",")
    return str(value)


class Stack:
    """A template with its parameters: conditions decided, references and functions worked out."""

    def __init__(self, template, parameters):
        self.template = template
        self.parameters = {
            name: given(body, parameters.get(name, body.get("Default", "")))
            for name, body in template.get("Parameters", {}).items()
        }
        self.resources = {}
        for name, body in template["Resources"].items():
            if "Condition" not in body or self.condition(body["Condition"]):
                self.resources[name] = body
        self.resources = {name: self.value(body) for name, body in self.resources.items()}
        self.outputs = {
            name: self.value(body["Value"]) for name, body in template.get("Outputs", {}).items()
        }

    def of_type(self, kind):
        """(logical id, properties) of each resource of a type."""
        for name, body in self.resources.items():
            if body["Type"] == kind:
                yield name, body.get("Properties", {})

    def properties(self, name):
        return self.resources[name]["Properties"]

    def condition(self, name):
        return self.test(self.template["Conditions"][name])

    def test(self, node):
        (function, argument), = node.items()
        if function == "Condition":
            return self.condition(argument)
        if function == "Fn::Not":
            return not self.test(argument[0])
        if function == "Fn::And":
            return all(self.test(one) for one in argument)
        if function == "Fn::Or":
            return any(self.test(one) for one in argument)
        if function == "Fn::Equals":
            return self.value(argument[0]) == self.value(argument[1])
        raise ValueError(f"unknown condition {function}")

    def value(self, node):
        if isinstance(node, list):
            values = [self.value(one) for one in node]
            return [one for one in values if one is not NO_VALUE]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            (function, argument), = node.items()
            if function in FUNCTIONS:
                return FUNCTIONS[function](self, argument)
        values = {key: self.value(one) for key, one in node.items()}
        return {key: one for key, one in values.items() if one is not NO_VALUE}

    def ref(self, name):
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.parameters:
            return self.parameters[name]
        body = self.template["Resources"][name]
        properties = body.get("Properties", {})
        kind = body["Type"]
        named = NAMED_BY.get(kind)
        if named:
            node = properties
            for member in named:
                node = node.get(member) if isinstance(node, dict) else None
            given = self.value(node) if node is not None else NO_VALUE
            return f"{STACK}-{name.lower()}" if given is NO_VALUE else given
        if kind in REF_IS_ARN:
            return self.arn(name)
        return f"{STACK}-{name}"

    def arn(self, name):
        body = self.template["Resources"][name]
        properties, kind = body.get("Properties", {}), body["Type"]
        if kind == "AWS::S3::Bucket":
            return f"arn:aws:s3:::{self.ref(name)}"
        if kind == "AWS::Lambda::Function":
            return arn("lambda", f"function:{self.ref(name)}")
        if kind == "AWS::Lambda::LayerVersion":
            return arn("lambda", f"layer:{self.value(properties['LayerName'])}:1")
        if kind == "AWS::Logs::LogGroup":
            return arn("logs", f"log-group:{self.ref(name)}:*")
        if kind == "AWS::KMS::Key":
            return arn("kms", "key/11111111-2222-3333-4444-555555555555")
        if kind == "AWS::SNS::Topic":
            return arn("sns", f"{STACK}-{name}")
        if kind == "AWS::SecretsManager::Secret":
            return arn("secretsmanager", f"secret:{name}-abcdef")
        if kind == "AWS::CloudWatch::Alarm":
            return arn("cloudwatch", f"alarm:{self.value(properties['AlarmName'])}")
        if kind == "AWS::StepFunctions::StateMachine":
            return arn("states", f"stateMachine:{self.value(properties['StateMachineName'])}")
        if kind == "AWS::IAM::Role":
            return arn("iam", f"role/{STACK}-{name}", region="")
        if kind == "AWS::IAM::ManagedPolicy":
            return arn("iam", f"policy/{STACK}-{name}", region="")
        raise ValueError(f"{name}: no ARN is known for {kind}")

    def attribute(self, argument):
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        if attribute != "Arn":
            raise ValueError(f"{name}.{attribute}: unknown attribute")
        return self.arn(name)

    def substitute(self, argument):
        text, more = (argument, {}) if isinstance(argument, str) else argument
        more = {key: self.value(one) for key, one in more.items()}

        def replace(match):
            name = match[1]
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in more:
                return str(more[name])
            return str(self.attribute(name) if "." in name else self.ref(name))

        return re.sub(r"\$\{([^}]+)\}", replace, text)

    def choose(self, argument):
        name, yes, no = argument
        return self.value(yes if self.condition(name) else no)

    def find(self, argument):
        node = self.template["Mappings"]
        for key in argument:
            node = node[self.value(key)]
        return node

    def definition(self, name):
        """A workflow with its substitutions, as data."""
        properties = self.properties(name)
        text = properties["DefinitionString"]
        for key, one in properties.get("DefinitionSubstitutions", {}).items():
            text = text.replace("${" + key + "}", str(one))
        return json.loads(text)


NAMED_BY = {
    "AWS::S3::Bucket": ["BucketName"],
    "AWS::Logs::LogGroup": ["LogGroupName"],
    "AWS::Glue::Database": ["DatabaseInput", "Name"],
    "AWS::Athena::WorkGroup": ["Name"],
    "AWS::Lambda::Function": ["FunctionName"],
}
REF_IS_ARN = {
    "AWS::StepFunctions::StateMachine",
    "AWS::SNS::Topic",
    "AWS::Lambda::LayerVersion",
    "AWS::SecretsManager::Secret",
    "AWS::IAM::ManagedPolicy",
}
FUNCTIONS = {
    "Ref": Stack.ref,
    "Fn::GetAtt": Stack.attribute,
    "Fn::Sub": Stack.substitute,
    "Fn::If": Stack.choose,
    "Fn::FindInMap": Stack.find,
    "Fn::Join": lambda stack, argument: argument[0].join(
        str(one) for one in stack.value(argument[1])
    ),
    "Fn::Select": lambda stack, argument: stack.value(argument[1])[int(argument[0])],
    "Fn::Split": lambda stack, argument: stack.value(argument[1]).split(argument[0]),
}

TABLE_ARN = arn("dynamodb", "table/app-single-table")
REQUIRED = {
    "StreamArn": f"{TABLE_ARN}/stream/2026-05-01T00:00:00.000",
    "CodeBucket": "artifacts",
    "StreamCodeKey": "stream.zip",
    "ExportCodeKey": "export-job.zip",
    "SchemasKey": "schemas.zip",
}
# Deployments that leave everything to the template, that share rows, and that bring everything along.
VARIANTS = {
    "defaults": REQUIRED,
    "shared": REQUIRED | {"ReaderAccounts": "210987654321"},
    "own": REQUIRED
    | {
        "TableKmsKeyArn": arn("kms", "key/aaaaaaaa-0000-0000-0000-000000000000"),
        "KmsKeyArn": arn("kms", "key/bbbbbbbb-0000-0000-0000-000000000000"),
        "HmacSecretArn": arn("secretsmanager", "secret:hmac-abcdef"),
        "DatabaseName": "orders_test",
        "LakeBucketName": "orders-test-lake",
        "AlarmEmail": "who@example.com",
        "ReaderAccounts": "210987654321,333333333333",
        "Architecture": "x86_64",
        "IncrementalExports": "ENABLED",
    },
}
