# The controller of the comparison on kopf: a Site owns a Deployment and a ConfigMap of its name.
import datetime

import kopf
import kubernetes

GROUP, VERSION, PLURAL = "compare.example", "v1", "sites"


@kopf.on.startup()
def configure(settings, **_):
    try:
        kubernetes.config.load_incluster_config()
    except kubernetes.config.ConfigException:
        kubernetes.config.load_kube_config()
    settings.posting.enabled = False
    settings.execution.max_workers = 16
    settings.persistence.finalizer = "compare.example/kopf"


def keep(body, spec):
    labels = {"site": body["metadata"]["name"]}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"image": spec["image"]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "site", "image": spec["image"]}]},
            },
        },
    }
    for child in (config, deployment):
        child["metadata"] = {"name": body["metadata"]["name"], "labels": labels}
        kopf.adopt(child, owner=body)
    name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
    core, apps = kubernetes.client.CoreV1Api(), kubernetes.client.AppsV1Api()
    how = {"field_manager": "kopf", "force": True, "_content_type": "application/apply-patch+yaml"}
    core.patch_namespaced_config_map(name, namespace, config, **how)
    apps.patch_namespaced_deployment(name, namespace, deployment, **how)


@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.resume(GROUP, VERSION, PLURAL)
@kopf.on.update(GROUP, VERSION, PLURAL, field="spec")
def changed(body, spec, status, patch, meta, **_):
    keep(body, spec)
    before = next((each for each in status.get("conditions", []) if each["type"] == "Ready"), None)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    patch.status["observedGeneration"] = meta["generation"]
    patch.status["conditions"] = [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Kept",
            "message": "all is as it should be",
            "observedGeneration": meta["generation"],
            "lastTransitionTime": before["lastTransitionTime"] if before and before["status"] == "True" else now,
        }
    ]


@kopf.on.delete(GROUP, VERSION, PLURAL)
def deleted(**_):
    pass  # what it owns goes with it; the handler is there for the finalizer


@kopf.on.event("", "v1", "configmaps", labels={"site": kopf.PRESENT})
@kopf.on.event("apps", "v1", "deployments", labels={"site": kopf.PRESENT})
def drifted(meta, namespace, **_):
    owner = next((each for each in meta.get("ownerReferences", []) if each["kind"] == "Site"), None)
    if owner is None:
        return
    api = kubernetes.client.CustomObjectsApi()
    try:
        site = api.get_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, owner["name"])
    except kubernetes.client.ApiException as error:
        if error.status == 404:
            return
        raise
    if "deletionTimestamp" not in site["metadata"]:
        keep(site, site["spec"])
