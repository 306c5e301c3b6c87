import { at, type Fields, fieldsOf } from "../../api/object.ts";
import type { ResourceType } from "../resource-type.ts";

/**
 * Conversion between autoscaling/v1, which knows one metric, CPU utilization, and autoscaling/v2, the stored form, which has a
 * list.
 */
export const autoscalerConversion: Pick<ResourceType, "fromStorage" | "toStorage"> = {
  fromStorage(object) {
    const { metrics, ...spec } = fieldsOf(object.spec);
    const { currentMetrics, conditions: _, ...status } = fieldsOf(object.status);
    const target = utilization(metrics, "target");
    const current = utilization(currentMetrics, "current");
    return {
      ...object,
      apiVersion: "autoscaling/v1",
      spec: { ...spec, ...(target === undefined ? {} : { targetCPUUtilizationPercentage: target }) },
      status: {
        currentReplicas: 0,
        ...status,
        ...(current === undefined ? {} : { currentCPUUtilizationPercentage: current }),
      },
    };
  },
  toStorage(object) {
    const { targetCPUUtilizationPercentage: target, ...spec } = fieldsOf(object.spec);
    const { currentCPUUtilizationPercentage: current, ...status } = fieldsOf(object.status);
    return {
      ...object,
      apiVersion: "autoscaling/v2",
      spec: {
        ...spec,
        ...(target === undefined
          ? {}
          : { metrics: [cpu("target", { type: "Utilization", averageUtilization: target })] }),
      },
      ...(object.status === undefined
        ? {}
        : {
            status: {
              ...status,
              ...(current === undefined ? {} : { currentMetrics: [cpu("current", { averageUtilization: current })] }),
            },
          }),
    };
  },
};

function cpu(field: "target" | "current", value: Fields): Fields {
  return { type: "Resource", resource: { name: "cpu", [field]: value } };
}

function utilization(metrics: unknown, field: "target" | "current"): unknown {
  if (!Array.isArray(metrics)) return undefined;
  const metric = metrics.find((one) => at(one, "resource.name") === "cpu");
  return at(metric, `resource.${field}.averageUtilization`);
}
