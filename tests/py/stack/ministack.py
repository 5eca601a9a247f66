"""A template as MiniStack takes it: what it lacks is replaced, and functions reach its S3.

It does not unpack layers where functions that it runs itself could see them, so these find the schemas
in a folder: `LAYERS/<key of the layer's zip>/schemas`.
"""


def adapted(template, endpoint, layers):
    template["Conditions"] = looked_up(template["Conditions"], template["Mappings"])
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
                "DYNALAKE_SCHEMAS": {"Fn::Sub": layers + "/${SchemasKey}/schemas"},
            }
    return template


def looked_up(node, mappings):
    """A node without `Fn::FindInMap`, which MiniStack does not know in conditions."""
    if isinstance(node, list):
        return [looked_up(one, mappings) for one in node]
    if not isinstance(node, dict):
        return node
    if "Fn::FindInMap" in node:
        for step in node["Fn::FindInMap"]:
            mappings = mappings[step]
        return mappings
    return {key: looked_up(one, mappings) for key, one in node.items()}
