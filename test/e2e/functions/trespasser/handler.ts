import { defineHandler, ForbiddenError } from "@watchfire/sdk";

/** Records on the ConfigMap who refused the access. */
export default defineHandler(async (event, ctx) => {
  const { name, annotations } = event.object.metadata;
  if (annotations?.refused) return;
  const refused = await ctx.kube
    .get({ apiVersion: "v1", kind: "Secret", name: "treasure", namespace: "trespass" })
    .then(
      () => "nobody",
      (error) => (error instanceof ForbiddenError ? error.message : `not as forbidden: ${error}`),
    );
  await ctx.kube.patch(
    { apiVersion: "v1", kind: "ConfigMap", name, namespace: "trespass" },
    { metadata: { annotations: { refused } } },
  );
});
