// Made from function.yaml by `watchfire types`, and by `watchfire dev` when it changes: change that.
import type * as sdk from "@watchfire/sdk";

type Triggers = sdk.Triggers<{
  readonly sources: sdk.ObjectOf<"v1", "ConfigMap">;
  readonly copies: sdk.ObjectOf<"v1", "ConfigMap">;
  readonly namespaces: sdk.KubeObject;
}>;

type Env = Record<never, string>;
type Reads =
  | sdk.Read<"v1", "ConfigMap", never, sdk.ObjectOf<"v1", "ConfigMap">>
  | sdk.Read<"v1", "Namespace", "place", sdk.KubeObject>;

export type Context = sdk.Context<Env, sdk.CacheOf<Reads>>;
export type Event = sdk.EventOf<Triggers>;
export type Handler = sdk.Handler<Triggers, Context>;
