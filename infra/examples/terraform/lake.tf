# The lake of a table that Terraform makes.
variable "code_bucket" {
  description = "Bucket for zips and template, in the table's Region"
  type        = string
}

variable "lake" {
  description = "Folder that `dynalake bundle` and `dynalake template` wrote"
  type        = string
  default     = "lake"
}

locals {
  # Names hold a digest of the contents: what changed has another key.
  zips = {
    for name in ["schemas", "stream", "export-job"] :
    name => one(fileset(var.lake, "${name}-*.zip"))
  }
}

resource "aws_dynamodb_table" "orders" {
  name             = "orders"
  billing_mode     = "PAY_PER_REQUEST"
  hash_key         = "PK"
  range_key        = "SK"
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }
}

resource "aws_s3_object" "zips" {
  for_each = local.zips
  bucket   = var.code_bucket
  key      = "dynalake/${each.value}"
  source   = "${var.lake}/${each.value}"
}

resource "aws_s3_object" "template" {
  bucket = var.code_bucket
  key    = "dynalake/templates/${filesha256("${var.lake}/template.yaml")}.yaml"
  source = "${var.lake}/template.yaml"
}

resource "aws_cloudformation_stack" "lake" {
  name         = "orders-lake"
  capabilities = ["CAPABILITY_IAM"]
  template_url = "https://${var.code_bucket}.s3.amazonaws.com/${aws_s3_object.template.key}"

  parameters = {
    StreamArn     = aws_dynamodb_table.orders.stream_arn
    CodeBucket    = var.code_bucket
    StreamCodeKey = aws_s3_object.zips["stream"].key
    ExportCodeKey = aws_s3_object.zips["export-job"].key
    SchemasKey    = aws_s3_object.zips["schemas"].key
  }
}
