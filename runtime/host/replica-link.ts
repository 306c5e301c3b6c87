import type { Hono } from "hono";
import { z } from "zod";
import { systemReason } from "../base/wording.ts";
import type { ConsoleParts } from "../console/app.ts";
import type { FleetLink } from "../console/fleet-link.ts";
import { ownerOfLetter, replicaName } from "../console/replicas.ts";
import type { FleetReport } from "../control/fleet-report.ts";
import { controlRoutes } from "../observe/control-routes.ts";
import type { Inspection } from "../observe/endpoints.ts";
import { UnderWay } from "../observe/under-way.ts";
import type { RuntimeOptions } from "./components.ts";
import type { Ownership } from "./ownership.ts";

interface ReplicaLinkParts {
  readonly inspection: Inspection;
  readonly partsOf: (control: ConsoleParts["control"]) => ConsoleParts;
  readonly ownership: Pick<Ownership, "owner" | "peers">;
  readonly options: Pick<RuntimeOptions, "clock" | "listen" | "log">;
  /** The first port that is tried. */
  readonly port: number;
}

/**
 * Opens the connection to the other replicas of the fleet, whose consoles ask this one. Without one, which is logged, functions run
 * all the same: returns `undefined`.
 */
export async function openReplicaLink(parts: ReplicaLinkParts): Promise<FleetLink | undefined> {
  const { inspection, partsOf, ownership, options, port } = parts;
  const { clock, listen, log } = options;
  const { FleetLink } = await import("../console/fleet-link.ts");
  let api: Promise<Hono> | undefined;
  // Its code is loaded when a replica asks.
  const load = async () => {
    const { replicaApi } = await import("../console/app.ts");
    return replicaApi(partsOf(controlRoutes(inspection, new UnderWay(clock, () => inspection.unsaved()))));
  };
  try {
    return await FleetLink.open(listen.host, port, {
      self: () => ownership.owner,
      peers: () => ownership.peers,
      answer: async (request) => {
        api ??= load();
        return (await api).fetch(request);
      },
    });
  } catch (error) {
    log.warn({ error: systemReason(error) }, "other replicas cannot ask this one for the console");
    return undefined;
  }
}

/** Returns the function of a dead letter that another replica has; `undefined` if that one does not say so. */
export async function functionElsewhere(
  link: Pick<FleetLink, "others" | "ask"> | undefined,
  fleet: FleetReport | undefined,
  letter: string,
): Promise<string | undefined> {
  const name = fleet ? ownerOfLetter(fleet, letter) : "";
  const peer = link?.others.find(({ owner }) => replicaName(owner) === name);
  if (!link || !peer) return undefined;
  try {
    const { status, text } = await link.ask(peer.owner, "GET", `/api/dead-letters/${letter}`);
    return status === 200 ? letterSchema.parse(JSON.parse(text)).function : undefined;
  } catch {
    return undefined;
  }
}

const letterSchema = z.looseObject({ function: z.string() });
