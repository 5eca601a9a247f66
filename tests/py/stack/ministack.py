"""A template as MiniStack takes it: what it lacks is replaced, and functions reach its S3."""


def adapted(template, endpoint):
    for body in template["Resources"].values():
        properties = body.get("Properties", {})
        if body["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in properties:
            # No metric math: the first of its metrics instead.
            metrics = properties.pop("Metrics")
            first = next(one["MetricStat"] for one in metrics if "MetricStat" in one)
            properties |= first["Metric"]
            properties |= {"Statistic": first["Stat"], "Period": first["Period"]}
        if body["Type"] == "AWS::Lambda::Function":
            properties["Environment"]["Variables"] |= {
                "DYNALAKE_S3_ENDPOINT": endpoint,
                "DYNALAKE_S3_PATH_STYLE": "true",
            }
    return template
