/** `<set>-<ordinal>_<uid>`. A Deployment's pod ends in five characters, a process outside a pod in eight. */
const identityOfPod = /^(.+)-\d{1,4}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The StatefulSet whose pod has this identity; undefined where it is no such pod's. */
export const statefulSetOf = (identity: string): string | undefined => identityOfPod.exec(identity)?.[1];
