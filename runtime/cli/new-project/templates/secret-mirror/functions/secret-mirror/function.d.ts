// Made from function.yaml by `watchfire types`, and by `watchfire dev` when it changes: change that.
import type * as sdk from "@watchfire/sdk";

type Kind = sdk.ObjectOf<"v1", "Secret">;

type Env = Record<never, string>;
type Reads =
  | sdk.Read<"v1", "Secret", never, sdk.ObjectOf<"v1", "Secret">>
  | sdk.Read<"v1", "Namespace", never, sdk.KubeObject>;

export type Context = sdk.Context<Env, sdk.CacheOf<Reads>>;
export type Run = sdk.Reconciliation<Kind>;
export type Reconciler = sdk.Reconciler<Kind, Context>;
