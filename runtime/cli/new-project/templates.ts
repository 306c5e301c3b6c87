/** The templates' names, and what each does. */
export const templates = {
  hello: "logs each ConfigMap of a namespace",
  controller: "reconciles a custom resource, with its CRD, types and status",
  sync: "copies a labelled ConfigMap into another namespace",
  notifier: "posts Warning events to a webhook",
} as const;

export type Template = keyof typeof templates;
