// The embedded cluster that the scenarios of a file share. Each scenario uses a separate namespace.

import { type Cluster, startCluster } from "@watchfire/cluster";
import { afterAll, onTestFinished } from "vitest";
import type { RuntimeOptions } from "../../runtime/host/components.ts";
import { Client } from "../target/client.ts";
import { Installation } from "../tools/installation.ts";
import { Team } from "../tools/team.ts";

export const cluster: Cluster = await startCluster();

const connection = { server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };

/** The cluster's administrator. */
export const admin = new Client({ url: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });

afterAll(async () => {
  await admin.close();
  await cluster.close();
});

/** A runtime that ends with the test. Default token: the administrator's. `more`: options in which it differs from a plain start. */
export async function install(
  token: string = connection.token,
  more: Partial<RuntimeOptions> = {},
): Promise<Installation> {
  const made = await Installation.on({ ...connection, token }, undefined, more);
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

/** A namespace that only this test uses. */
export const createTeam = (labels: Record<string, string> = {}): Promise<Team> => Team.create(admin, labels);
