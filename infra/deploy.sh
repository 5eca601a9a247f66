#!/usr/bin/env bash
# From a DynamoDB table to Athena tables that fill by themselves: one stack, deployed with the AWS CLI.
#
#   infra/deploy.sh --stack orders-lake --table orders --schemas schemas/orders --artifacts release
#   infra/deploy.sh --stack demo-lake --demo --artifacts release
#
# Run again after a change of schemas, parameters or release; without a change nothing happens.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
repository=$(dirname "$here")

usage() {
  cat <<'TEXT'
usage: infra/deploy.sh --stack NAME (--table TABLE | --demo) [options]

  --stack NAME       name of the CloudFormation stack; functions, alarms and workgroup are named after it
  --table TABLE      DynamoDB table to make a lake of
  --demo             make a table to try it with (in a stack of its own), and write items to it
  --schemas DIR      schema folder (with --demo: schemas/ecommerce)
  --artifacts DIR    folder with the binaries `stream` and `export-job` (else target/lambda)
  --region REGION    AWS Region (else the CLI's)
  --bucket BUCKET    bucket for zips and template (else dynalake-artifacts-ACCOUNT-REGION, made if missing)
  --parameter K=V    parameter of the template, as infra/base.yaml describes it; may be repeated
  --tag K=V          tag of everything in the stack; may be repeated
  --dry-run          check the table, make zips and template, deploy nothing

The command `dynalake` is taken from DYNALAKE, from target/release, or from the path.
TEXT
}

fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 2
}
note() { printf 'note: %s\n' "$*" >&2; }
step() { printf '== %s\n' "$*" >&2; }

stack='' table='' schemas='' artifacts='' region='' bucket='' demo='' dry_run=''
parameters=() tags=()
while [ $# -gt 0 ]; do
  case $1 in
    --demo) demo=1; shift; continue ;;
    --dry-run) dry_run=1; shift; continue ;;
    --help | -h) usage; exit 0 ;;
    --stack | --table | --schemas | --artifacts | --region | --bucket | --parameter | --tag)
      [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) usage >&2; fail "unknown option $1" ;;
  esac
  case $1 in
    --stack) stack=$2 ;;
    --table) table=$2 ;;
    --schemas) schemas=$2 ;;
    --artifacts) artifacts=$2 ;;
    --region) region=$2 ;;
    --bucket) bucket=$2 ;;
    --parameter) parameters+=("$2") ;;
    --tag) tags+=("$2") ;;
  esac
  shift 2
done

[ -n "$stack" ] || { usage >&2; fail 'no --stack is given'; }
# Names of functions and log groups are made from it.
[[ $stack =~ ^[A-Za-z][A-Za-z0-9-]{0,47}$ ]] ||
  fail "--stack $stack: expected up to 48 letters, digits and hyphens, a letter first"
if [ -n "$demo" ]; then
  table=${table:-$stack-table}
  schemas=${schemas:-$repository/schemas/ecommerce}
fi
[ -n "$table" ] || { usage >&2; fail 'neither --table nor --demo is given'; }
[ -n "$schemas" ] || fail 'no --schemas folder is given' \
  'begin with a copy of schemas/ecommerce; docs/schemas.md has the language'
artifacts=${artifacts:-$repository/target/lambda}

command -v aws >/dev/null || fail 'the AWS CLI is not installed'
if [ -n "$region" ]; then export AWS_DEFAULT_REGION=$region AWS_REGION=$region; fi
region=${AWS_REGION:-${AWS_DEFAULT_REGION:-$(aws configure get region || true)}}
[ -n "$region" ] || fail 'no Region is set' 'give --region, or set AWS_REGION'
export AWS_PAGER=''

dynalake=${DYNALAKE:-}
if [ -z "$dynalake" ]; then
  dynalake=$repository/target/release/dynalake
  [ -x "$dynalake" ] || dynalake=$(command -v dynalake) ||
    fail 'the command dynalake is not there' 'cargo install --path cli, or set DYNALAKE'
fi

account=$(aws sts get-caller-identity --query Account --output text)
bucket=${bucket:-dynalake-artifacts-$account-$region}

if [ -n "$demo" ] && [ -z "$dry_run" ]; then
  step "table $table, in the stack $stack-table"
  aws cloudformation deploy --stack-name "$stack-table" --template-file "$here/demo-table.yaml" \
    --parameter-overrides "TableName=$table" --no-fail-on-empty-changeset >&2
fi

step "table $table"
query='Table.[StreamSpecification.StreamViewType,LatestStreamArn,SSEDescription.KMSMasterKeyArn]'
described=$(aws dynamodb describe-table --table-name "$table" --query "$query" --output text) ||
  fail "the table $table cannot be looked at in $region" 'aws dynamodb list-tables'
read -r view stream_arn table_key <<<"$described"
enable="aws dynamodb update-table --region $region --table-name $table --stream-specification"
case $view in
  NEW_AND_OLD_IMAGES) ;;
  NEW_IMAGE)
    note "the stream has new images only: entities must be told apart by their keys, and moves leave" \
      'tombstones in every table that the keys allow' ;;
  None)
    fail "the table $table has no stream" 'switch it on, and write it into whatever made the table:' \
      "$enable StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES" ;;
  *)
    fail "the stream of $table has the view type $view, which does not say what an item is" \
      'a view type cannot be changed; a new stream has another ARN, and its other readers must follow:' \
      "$enable StreamEnabled=false" \
      "$enable StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES" ;;
esac

recovery=$(aws dynamodb describe-continuous-backups --table-name "$table" --output text --query \
  ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus || echo unknown)
if [ "$recovery" != ENABLED ]; then
  note "point-in-time recovery is off ($recovery), so the table cannot be exported and the lake holds" \
    'only what changes from now on. To switch it on:'
  note "aws dynamodb update-continuous-backups --region $region --table-name $table" \
    '--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true'
fi

ours=$(aws cloudformation describe-stack-resource --stack-name "$stack" --output text \
  --logical-resource-id StreamMapping --query StackResourceDetail.PhysicalResourceId 2>/dev/null || true)
readers=$(aws lambda list-event-source-mappings --event-source-arn "$stream_arn" --output text \
  --query "EventSourceMappings[?UUID!='$ours'].FunctionArn")
for reader in $readers; do
  [ "$reader" = None ] ||
    note "the stream is read by $reader, too; more than two readers (one of a global table) throttle" \
      'each other'
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step 'zips and template'
"$dynalake" bundle "$schemas" --artifacts "$artifacts" --out "$work/zips" >&2
"$dynalake" template "$schemas" --out "$work/template.yaml" >&2
one() {
  local found=("$work/zips/$1"-*.zip)
  basename "${found[0]}"
}
layer=$(one schemas) stream=$(one stream) export_job=$(one export-job)
case $stream in
  stream-arm64-*) architecture=arm64 ;;
  *) architecture=x86_64 ;;
esac
if [ -n "$dry_run" ]; then
  step 'nothing is deployed'
  exit 0
fi

step "upload to s3://$bucket/dynalake/"
if ! aws s3api head-bucket --bucket "$bucket" --expected-bucket-owner "$account" 2>/dev/null >&2; then
  location=()
  [ "$region" = us-east-1 ] ||
    location=(--create-bucket-configuration "LocationConstraint=$region")
  aws s3api create-bucket --bucket "$bucket" "${location[@]}" >/dev/null
  aws s3api put-public-access-block --bucket "$bucket" --public-access-block-configuration \
    BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
fi
# A name stands for its contents, so what is there need not be sent again.
aws s3 sync "$work/zips" "s3://$bucket/dynalake/" --size-only --no-progress >&2

step "stack $stack"
overrides=(
  "StreamArn=$stream_arn"
  "CodeBucket=$bucket"
  "StreamCodeKey=dynalake/$stream"
  "ExportCodeKey=dynalake/$export_job"
  "SchemasKey=dynalake/$layer"
  "Architecture=$architecture"
)
[ "$table_key" = None ] || overrides+=("TableKmsKeyArn=$table_key")
deploy=(
  --stack-name "$stack" --template-file "$work/template.yaml" --capabilities CAPABILITY_IAM
  --s3-bucket "$bucket" --s3-prefix dynalake/templates --no-fail-on-empty-changeset
)
[ ${#tags[@]} -eq 0 ] || deploy+=(--tags "${tags[@]}")
aws cloudformation deploy "${deploy[@]}" \
  --parameter-overrides "${overrides[@]}" ${parameters[@]+"${parameters[@]}"} >&2

output() {
  aws cloudformation describe-stacks --stack-name "$stack" --output text \
    --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue"
}

step 'views'
printf '{"step":"publish"}' >"$work/publish.json"
# fileb: versions 1 and 2 of the CLI agree on it.
failed=$(aws lambda invoke --function-name "$(output ExportFunctionName)" \
  --payload "fileb://$work/publish.json" --query FunctionError --output text "$work/published.json")
[ "$failed" = None ] ||
  fail 'the stack is there, but its views could not be published' "$(cat "$work/published.json")" \
    'run this script again'

if [ -n "$demo" ]; then
  step "items for $table"
  {
    printf '{"%s":[' "$table"
    sed -e 's/.*/{"PutRequest":{"Item":&}}/' -e '$!s/$/,/' \
      "$repository/cli/src/commands/demo/items.jsonl"
    printf ']}'
  } >"$work/items.json"
  aws dynamodb batch-write-item --request-items "file://$work/items.json" >/dev/null
fi

database=$(output DatabaseName)
first=$(aws glue get-tables --database-name "$database" --output text \
  --query "TableList[?ends_with(Name, '_changes')].Name | [0]")
cat <<TEXT

The lake of $table is $(output LakeUri), its tables are in the Athena workgroup $(output WorkGroupName).
Changes show up there after a minute or two:

  SELECT * FROM "$database"."${first%_changes}" LIMIT 10

What was in the table before comes with its first full export:

  AWS_REGION=$region dynalake backfill --stack $stack

How it does, at any time: AWS_REGION=$region dynalake status --stack $stack

Dashboard: $(output DashboardUrl)
TEXT
