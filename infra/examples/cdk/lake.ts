// The lake of a table that a CDK app makes (or imports, with its stream's ARN: see below).
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CfnStack } from 'aws-cdk-lib';
import { ITable } from 'aws-cdk-lib/aws-dynamodb';
import { Asset } from 'aws-cdk-lib/aws-s3-assets';
import { Construct } from 'constructs';

export class Lake extends Construct {
  // `folder` is what `dynalake bundle` and `dynalake template` wrote. An imported table must know its
  // stream: Table.fromTableAttributes(this, 'Orders', { tableArn, tableStreamArn }).
  constructor(scope: Construct, id: string, table: ITable, folder: string) {
    super(scope, id);
    const zip = (name: string) => {
      const file = readdirSync(folder).find((one) => one.startsWith(`${name}-`) && one.endsWith('.zip'));
      return new Asset(this, name, { path: join(folder, file!) });
    };
    const template = new Asset(this, 'template', { path: join(folder, 'template.yaml') });
    const [schemas, stream, exportJob] = ['schemas', 'stream', 'export-job'].map(zip);
    new CfnStack(this, 'Stack', {
      templateUrl: template.httpUrl,
      parameters: {
        StreamArn: table.tableStreamArn!,
        CodeBucket: stream.s3BucketName,
        StreamCodeKey: stream.s3ObjectKey,
        ExportCodeKey: exportJob.s3ObjectKey,
        SchemasKey: schemas.s3ObjectKey,
      },
    });
  }
}
