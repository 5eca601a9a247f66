"""Judges a CloudFormation template: cfn-lint, parliament, and what both do not look at."""
