/** `<set>-<ordinal>_<uid>`. A Deployment's pod name ends in five characters, the name of a process outside a pod in eight. */
const identityOfPod = /^(.+)-\d{1,4}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns the StatefulSet whose pod has this identity, or `undefined` if it is not such a pod's. */
export const statefulSetOf = (identity: string): string | undefined => identityOfPod.exec(identity)?.[1];
