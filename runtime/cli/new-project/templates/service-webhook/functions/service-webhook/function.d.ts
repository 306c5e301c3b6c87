// Made from function.yaml by `watchfire types`, and by `watchfire dev` when it changes: change that.
import type * as sdk from "@watchfire/sdk";

type Triggers = sdk.Triggers<{
  readonly services: sdk.ObjectOf<"v1", "Service">;
}>;

type Env = {
  readonly SERVICE_WEBHOOK_URL?: string;
};
type Reads = never;

export type Context = sdk.Context<Env, sdk.CacheOf<Reads>>;
export type Event = sdk.EventOf<Triggers>;
export type Handler = sdk.Handler<Triggers, Context>;
