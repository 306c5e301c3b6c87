import { randomBytes } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { stringify } from "yaml";
import { makeFolder } from "../storage/folder.ts";
import { writing } from "../storage/writing.ts";

/** Returns the kubeconfig of the cluster's administrator as YAML. It refers to no other file. */
export function kubeconfigText(cluster: { url: string; ca: string; token: string }): string {
  const name = "watchfire";
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name,
        cluster: { server: cluster.url, "certificate-authority-data": Buffer.from(cluster.ca).toString("base64") },
      },
    ],
    users: [{ name: "watchfire-admin", user: { token: cluster.token } }],
    contexts: [{ name, context: { cluster: name, user: "watchfire-admin", namespace: "default" } }],
    "current-context": name,
  });
}

/** Writes a file that only its owner can read. The write is atomic: a reader sees the old content or the new. */
export function writePrivately(file: string, text: string): void {
  writing(file, () => {
    makeFolder(dirname(file));
    const temporary = `${file}.${randomBytes(4).toString("hex")}.tmp`;
    writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
    renameSync(temporary, file);
  });
}
