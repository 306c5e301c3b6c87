import { type Delivery, eventFields } from "../delivery/delivery.ts";

/** Takes the place of the object if several events are delivered as one. */
const batchKind = { apiVersion: "watchfire.dev/v1alpha1", kind: "Batch", namespace: "", uid: "" };

const comma = Buffer.from(",");
const [open, close] = [Buffer.from("["), Buffer.from("]")];

/** Combines several events, at least one, in one delivery. Its body is a JSON list of them, in their order. */
export function batchDelivery(deliveries: readonly Delivery[]): Delivery {
  const [first] = deliveries;
  if (!first) throw new TypeError("a batch has an event");
  const { function: name, trigger, type, resourceVersion, receivedAt, timeoutMs, state } = first;
  const texts = deliveries.flatMap((delivery, index) => [...(index === 0 ? [] : [comma]), ...textOf(delivery)]);
  return {
    function: name,
    trigger,
    id: first.id,
    type,
    object: { ...batchKind, name: `${deliveries.length} events` },
    resourceVersion,
    ...(receivedAt !== undefined && { receivedAt }),
    attempt: Math.max(...deliveries.map(({ attempt }) => attempt)),
    redelivered: deliveries.some(({ redelivered }) => redelivered),
    flags: {},
    body: Buffer.concat([open, ...texts, close]),
    batch: deliveries.map(({ id }) => id),
    members: deliveries,
    timeoutMs,
    state,
  };
}

/** Yields one event's JSON text in pieces. */
function* textOf(delivery: Delivery): Generator<Buffer> {
  const { type, body, oldBody } = delivery;
  yield Buffer.from(JSON.stringify(eventFields(delivery)).slice(0, -1));
  if (type !== "Scheduled") {
    yield Buffer.from(',"object":');
    yield body;
  }
  if (oldBody) {
    yield Buffer.from(',"oldObject":');
    yield oldBody;
  }
  yield Buffer.from("}");
}
